#include "bounded_count.h"

#include <limits>

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::control {
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
  count.add(100);  // watching only
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
  constexpr int kEach = rounds(200'000);
  constexpr std::uint32_t kBound = 5;
  BoundedCount<std::uint32_t> count;
  std::atomic<int> exceeded{0};
  run_together(4, [&](std::size_t t) {
    const auto units = static_cast<std::uint32_t>(1 + t % 3);
    for (int i = 0; i < kEach; ++i) {
      if (!count.try_add(units, kBound)) continue;
      if (count.held() > kBound) exceeded.fetch_add(1);
      count.sub(units);
    }
  });
  EXPECT_EQ(exceeded.load(), 0);
  EXPECT_EQ(count.held(), 0U);
}

}  // namespace
}  // namespace weir::control
