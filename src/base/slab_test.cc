#include "weir/base/slab.h"

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

TEST(Slab, FindsWhatItHolds) {
  Slab<int> slab(2);
  const SlabHandle a = slab.acquire(10);
  const SlabHandle b = slab.acquire(20);
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_NE(a, b);
  EXPECT_EQ(*slab.get(a), 10);
  EXPECT_EQ(*slab.get(b), 20);
  EXPECT_EQ(slab.handle_of(slab.get(b)), b);
}

TEST(Slab, SaysNoWhenExhaustedAndCountsIt) {
  Slab<int> slab(1);
  const SlabHandle a = slab.acquire(1);
  EXPECT_FALSE(slab.acquire(2));
  EXPECT_FALSE(slab.acquire(3));
  EXPECT_EQ(slab.stats(), (PoolStats{.used = 1, .peak = 1, .capacity = 1, .exhausted = 2}));
  slab.release(a);
  EXPECT_TRUE(slab.acquire(4));
  EXPECT_EQ(slab.stats(), (PoolStats{.used = 1, .peak = 1, .capacity = 1, .exhausted = 2}));
}

TEST(Slab, CapacityZeroIsAlwaysExhausted) {
  Slab<int> slab(0);
  EXPECT_FALSE(slab.acquire(1));
  EXPECT_EQ(slab.stats().exhausted, 1U);
  EXPECT_EQ(usage(slab.stats()), 1.0);
}

TEST(Slab, StaleHandleFindsNothing) {
  Slab<int> slab(1);
  const SlabHandle old = slab.acquire(1);
  slab.release(old);
  EXPECT_EQ(slab.get(old), nullptr);
  const SlabHandle fresh = slab.acquire(2);
  EXPECT_EQ(fresh.index, old.index);
  EXPECT_EQ(slab.get(old), nullptr);
  EXPECT_EQ(*slab.get(fresh), 2);
}

TEST(Slab, ZeroAndForeignHandlesFindNothing) {
  Slab<int> slab(2);
  EXPECT_EQ(slab.get(SlabHandle{}), nullptr);
  EXPECT_EQ(slab.get(SlabHandle{.index = 0, .generation = 1}), nullptr);
  EXPECT_TRUE(slab.acquire(1));
  EXPECT_EQ(slab.get(SlabHandle{.index = 9, .generation = 1}), nullptr);
  EXPECT_EQ(slab.get(SlabHandle{.index = 0, .generation = 2}), nullptr);
}

TEST(Slab, HandleSurvivesAWord) {
  const SlabHandle handle{.index = 0xFFFFFFFEU, .generation = 0x80000001U};
  EXPECT_EQ(SlabHandle::from_word(handle.to_word()), handle);
}

TEST(Slab, PlaceFreedLastIsUsedFirst) {
  Slab<int> slab(3);
  const SlabHandle a = slab.acquire(1);
  const SlabHandle b = slab.acquire(2);
  slab.release(a);
  slab.release(b);
  EXPECT_EQ(slab.acquire(3).index, b.index);
  EXPECT_EQ(slab.acquire(4).index, a.index);
  EXPECT_EQ(slab.acquire(5).index, 2U);
}

TEST(Slab, DestroysObjectsOnceEach) {
  const auto shared = std::make_shared<int>(0);
  {
    Slab<std::shared_ptr<int>> slab(4);
    const SlabHandle a = slab.acquire(shared);
    static_cast<void>(slab.acquire(shared));
    EXPECT_EQ(shared.use_count(), 3);
    slab.release(a);
    EXPECT_EQ(shared.use_count(), 2);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(Slab, ThrowingConstructorTakesNoPlace) {
  struct Throws {
    explicit Throws(bool now) {
      if (now) throw std::runtime_error("no");
    }
  };
  Slab<Throws> slab(1);
  EXPECT_THROW(static_cast<void>(slab.acquire(true)), std::runtime_error);
  EXPECT_EQ(slab.stats().used, 0U);
  EXPECT_TRUE(slab.acquire(false));
}

TEST(Slab, ForEachMayReleaseWhatItIsGiven) {
  Slab<int> slab(10);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(slab.acquire(i));
  slab.for_each([&slab](int& value) {
    if (value % 2 == 0) slab.release(slab.handle_of(&value));
  });
  EXPECT_EQ(slab.stats().used, 5U);
  int sum = 0;
  slab.for_each([&sum](const int& value) { sum += value; });
  EXPECT_EQ(sum, 1 + 3 + 5 + 7 + 9);
}

TEST(Slab, AgreesWithAMapUnderRandomUse) {
  Rng rng(21);
  Slab<std::uint64_t> slab(32);
  std::map<std::uint64_t, std::uint64_t> living;  // handle word -> value
  std::vector<SlabHandle> dead;
  std::uint64_t peak = 0;
  for (int step = 0; step < 50'000; ++step) {
    if (rng.chance(0.5)) {
      const std::uint64_t value = rng.next_u64();
      const SlabHandle handle = slab.acquire(value);
      ASSERT_EQ(static_cast<bool>(handle), living.size() < 32);
      if (handle) {
        ASSERT_TRUE(living.emplace(handle.to_word(), value).second);
      }
    } else if (!living.empty()) {
      auto it = living.lower_bound(rng.next_u64());
      if (it == living.end()) it = living.begin();
      const SlabHandle handle = SlabHandle::from_word(it->first);
      ASSERT_EQ(*slab.get(handle), it->second);
      slab.release(handle);
      living.erase(it);
      if (dead.size() < 1000) dead.push_back(handle);
    }
    peak = std::max<std::uint64_t>(peak, living.size());
    ASSERT_EQ(slab.stats().used, living.size());
    ASSERT_EQ(slab.stats().peak, peak);
  }
  for (const SlabHandle handle : dead) EXPECT_EQ(slab.get(handle), nullptr);
  for (const auto& [word, value] : living) EXPECT_EQ(*slab.get(SlabHandle::from_word(word)), value);
}

TEST(SlabDeathTest, DoubleReleaseIsCaught) {
  Slab<int> slab(2);
  const SlabHandle handle = slab.acquire(1);
  slab.release(handle);
  EXPECT_DEATH(slab.release(handle), "WEIR_ASSERT");
  EXPECT_DEATH(slab.release(SlabHandle{}), "WEIR_ASSERT");
  const int stranger = 0;
  EXPECT_DEATH(static_cast<void>(slab.handle_of(&stranger)), "WEIR_ASSERT");
}

}  // namespace
}  // namespace weir
