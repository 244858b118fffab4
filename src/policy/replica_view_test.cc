#include "policy/replica_view.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

TEST(Cohort, PanicsBelowTheHalf) {
  EXPECT_FALSE(in_panic({.endpoints = 2, .open = 1}));
  EXPECT_TRUE(in_panic({.endpoints = 3, .open = 1}));
  EXPECT_FALSE(in_panic({.endpoints = 3, .open = 2}));
  EXPECT_TRUE(in_panic({.endpoints = 1, .open = 0}));
  EXPECT_FALSE(in_panic({}));
}

TEST(Cohort, TheRampAppliesWhileTheHalfIsNotReturning) {
  EXPECT_TRUE(ramp_applies({.open = 3, .returning = 1}));
  EXPECT_FALSE(ramp_applies({.open = 3, .returning = 2}));
  EXPECT_FALSE(ramp_applies({.open = 1, .returning = 1}));
}

TEST(ShareMax, FollowsTheTable) {
  const Cohort three{.endpoints = 3, .open = 3, .open_weight = 3};
  EXPECT_EQ(share_max(100, 1, three), 50U);
  EXPECT_EQ(share_max(101, 1, three), 51U);
  EXPECT_EQ(share_max(0, 1, three), 0U);
  EXPECT_EQ(share_max(1, 1, three), 1U);
  EXPECT_EQ(share_max(100, 0.1, {.endpoints = 3, .open = 3, .open_weight = 2.1}), 8U);
  EXPECT_EQ(share_max(100, 1, {.endpoints = 1, .open = 1, .open_weight = 1}), 0U);
  EXPECT_EQ(share_max(100, 1, {.endpoints = 5, .open = 2, .open_weight = 2}), 0U);  // panic
}

TEST(ShareMax, TheSharesTogetherAreMoreThanTheLimit) {
  Rng rng(1);
  for (int run = 0; run < 10'000; ++run) {
    const auto open = static_cast<std::uint32_t>(2 + rng.below(30));
    std::vector<double> weights(open);
    Cohort cohort{.endpoints = open, .open = open};
    for (double& weight : weights) {
      weight = rng.chance(0.3) ? 0.1 : 1 + rng.unit() * 5;
      cohort.open_weight += weight;
    }
    const auto limit = static_cast<std::uint32_t>(1 + rng.below(10'000));
    std::uint64_t sum = 0;
    for (const double weight : weights) sum += share_max(limit, weight, cohort);
    EXPECT_GE(static_cast<double>(sum), 1.5 * limit - 1e-6);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
