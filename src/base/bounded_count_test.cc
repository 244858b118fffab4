#include "weir/base/bounded_count.h"

#include <atomic>
#include <barrier>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(BoundedCount, AddsUpToTheBoundAndNoFurther) {
  BoundedCount<std::uint32_t> count;
  EXPECT_TRUE(count.try_add(3, 5));
  EXPECT_FALSE(count.try_add(3, 5));
  EXPECT_TRUE(count.try_add(2, 5));
  EXPECT_FALSE(count.try_add(1, 5));
  EXPECT_TRUE(count.try_add(0, 5));
  count.sub(5);
  EXPECT_EQ(count.held(), 0U);
}

TEST(BoundedCount, ABoundThatFellBelowWhatIsHeldRefusesUntilItDrained) {
  BoundedCount<std::uint32_t> count;
  EXPECT_TRUE(count.try_add(10, 10));
  EXPECT_FALSE(count.try_add(1, 4));
  count.sub(7);
  EXPECT_TRUE(count.try_add(1, 4));
  count.add(100);  // without a bound
  EXPECT_EQ(count.held(), 104U);
  count.sub(104);
}

TEST(BoundedCount, HugeAmountsDoNotWrapAround) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  BoundedCount<std::uint64_t> count;
  EXPECT_TRUE(count.try_add(10, 100));
  EXPECT_FALSE(count.try_add(kMost, 100));
  EXPECT_FALSE(count.try_add(kMost - 5, kMost));
  EXPECT_EQ(count.held(), 10U);
  count.sub(10);
}

TEST(BoundedCountDeathTest, GivingBackMoreThanIsHeldIsABug) {
  BoundedCount<std::uint32_t> count;
  count.add(1);
  EXPECT_DEATH(count.sub(2), "WEIR_ASSERT");
  count.sub(1);
}

TEST(BoundedCount, NoInterleavingPassesTheBound) {
  constexpr std::uint32_t kBound = 5;
  constexpr int kThreads = 4;
  BoundedCount<std::uint32_t> count;
  std::atomic<std::uint32_t> peak{0};
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, units = 1 + t % 3] {
      start.arrive_and_wait();
      for (int i = 0; i < 50'000; ++i) {
        std::uint32_t sum = 0;
        if (!count.try_add(units, kBound, &sum)) continue;
        raise_to(peak, sum);
        count.sub(units);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(peak.load(), kBound);
  EXPECT_GT(peak.load(), 0U);
  EXPECT_EQ(count.held(), 0U);
}

}  // namespace
}  // namespace weir
