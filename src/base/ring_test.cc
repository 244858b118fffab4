#include "weir/base/ring.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

TEST(Ring, IsFirstInFirstOut) {
  Ring<int> ring(3);
  EXPECT_TRUE(ring.empty());
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(ring.push_back(i));
  EXPECT_EQ(ring.front(), 1);
  EXPECT_EQ(ring.back(), 3);
  EXPECT_EQ(ring.at(1), 2);
  EXPECT_EQ(ring.pop_front(), 1);
  EXPECT_EQ(ring.pop_front(), 2);
  EXPECT_EQ(ring.pop_front(), 3);
  EXPECT_TRUE(ring.empty());
}

TEST(Ring, RefusesWhenFullAndLeavesTheArgumentAlone) {
  Ring<std::unique_ptr<int>> ring(1);
  EXPECT_TRUE(ring.push_back(std::make_unique<int>(1)));
  EXPECT_TRUE(ring.full());
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(ring.push_back(std::move(second)));
  // NOLINTBEGIN(bugprone-use-after-move): a refusal moves nothing
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(*ring.front(), 1);
  EXPECT_EQ(ring.size(), 1U);
}

TEST(Ring, CapacityZeroIsAlwaysFull) {
  Ring<int> ring(0);
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.push_back(1));
}

TEST(Ring, DestroysWhatItHoldsAndNothingTwice) {
  const auto shared = std::make_shared<int>(0);
  {
    Ring<std::shared_ptr<int>> ring(4);
    for (int round = 0; round < 3; ++round) {
      while (ring.push_back(shared)) {
      }
      EXPECT_EQ(shared.use_count(), 5);
      static_cast<void>(ring.pop_front());
      static_cast<void>(ring.pop_front());
      EXPECT_EQ(shared.use_count(), 3);
    }
    ring.clear();
    EXPECT_EQ(shared.use_count(), 1);
    EXPECT_TRUE(ring.push_back(shared));
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(Ring, MovesAsAWhole) {
  Ring<std::unique_ptr<int>> ring(2);
  EXPECT_TRUE(ring.push_back(std::make_unique<int>(7)));
  Ring<std::unique_ptr<int>> moved = std::move(ring);
  EXPECT_EQ(*moved.front(), 7);
  Ring<std::unique_ptr<int>> assigned(5);
  EXPECT_TRUE(assigned.push_back(std::make_unique<int>(1)));
  assigned = std::move(moved);
  EXPECT_EQ(assigned.capacity(), 2U);
  EXPECT_EQ(*assigned.pop_front(), 7);
}

TEST(Ring, BehavesAsABoundedDequeUnderRandomUse) {
  Rng rng(11);
  for (std::size_t capacity = 1; capacity < 9; ++capacity) {
    Ring<std::uint64_t> ring(capacity);
    std::deque<std::uint64_t> model;
    for (int step = 0; step < 5000; ++step) {
      if (rng.chance(0.55)) {
        const std::uint64_t value = rng.next_u64();
        const bool fits = model.size() < capacity;
        ASSERT_EQ(ring.push_back(value), fits);
        if (fits) model.push_back(value);
      } else if (!model.empty()) {
        ASSERT_EQ(ring.pop_front(), model.front());
        model.pop_front();
      }
      ASSERT_EQ(ring.size(), model.size());
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(ring.at(i), model[i]);
    }
  }
}

TEST(RingDeathTest, ReadingWhatIsNotThereAborts) {
  Ring<int> ring(2);
  EXPECT_DEATH(static_cast<void>(ring.front()), "WEIR_ASSERT");
  EXPECT_DEATH(static_cast<void>(ring.pop_front()), "WEIR_ASSERT");
  EXPECT_TRUE(ring.push_back(1));
  EXPECT_DEATH(static_cast<void>(ring.at(1)), "WEIR_ASSERT");
}

}  // namespace
}  // namespace weir
