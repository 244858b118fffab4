#include "latency_shape.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

constexpr LatencyShape kCalm{1e6, 7e6, 23e6, 10e6};

LatencyShape shifted(LatencyShape shape, double wait) {
  return {shape.p10 + wait, shape.p50 + wait, shape.p90 + wait, shape.avg + wait};
}

TEST(LatencyShape, MedianOfThree) {
  EXPECT_EQ(median_of(1, 2, 3), 2);
  EXPECT_EQ(median_of(3, 1, 2), 2);
  EXPECT_EQ(median_of(2, 3, 1), 2);
  EXPECT_EQ(median_of(5, 5, 1), 5);
}

TEST(LatencyShape, AQueueMovesAllPercentilesAndIsReadOffExactly) {
  EXPECT_DOUBLE_EQ(added_wait(shifted(kCalm, 5e6), kCalm), 5e6);
  EXPECT_DOUBLE_EQ(added_wait(kCalm, kCalm), 0);
}

TEST(LatencyShape, FasterThanTheBaselineIsNoNegativeQueue) {
  EXPECT_DOUBLE_EQ(added_wait(shifted(kCalm, -0.5e6), kCalm), 0);
}

TEST(LatencyShape, OnePercentileAloneIsNoQueue) {
  LatencyShape slow_tail = kCalm;
  slow_tail.p90 = 900e6;
  slow_tail.avg = 100e6;
  EXPECT_DOUBLE_EQ(added_wait(slow_tail, kCalm), 0);
  EXPECT_DOUBLE_EQ(slowdown(slow_tail, kCalm), 1);
  LatencyShape other_mix = kCalm;
  other_mix.p50 = 80e6;  // half of the calls are slow now, the median jumps
  EXPECT_DOUBLE_EQ(added_wait(other_mix, kCalm), 0);
}

TEST(LatencyShape, WaitsInStepsAreAveraged) {
  const LatencyShape calm{20e6, 20e6, 20e6, 20e6};
  // Three of five, one of five and all wait for one step.
  EXPECT_DOUBLE_EQ(added_wait({20e6, 40e6, 40e6, 32e6}, calm), 12e6);
  EXPECT_DOUBLE_EQ(added_wait({20e6, 20e6, 40e6, 24e6}, calm), 4e6);
  EXPECT_DOUBLE_EQ(added_wait({40e6, 40e6, 40e6, 40e6}, calm), 20e6);
}

TEST(LatencyShape, AFewSlowCallsAmongEqualOnesAreNoQueue) {
  const LatencyShape calm{20e6, 20e6, 21e6, 20e6};
  EXPECT_DOUBLE_EQ(added_wait({20e6, 20e6, 21e6, 500e6}, calm), 0);
  const LatencyShape known{1e6, 1e6, 1e6, 18e6};  // one of eleven takes 200 ms: by chance p90 does
  EXPECT_DOUBLE_EQ(added_wait({1e6, 1e6, 200e6, 24e6}, known), 0);
}

TEST(LatencyShape, SlowdownIsTheMedianFactor) {
  EXPECT_DOUBLE_EQ(slowdown({2e6, 14e6, 46e6, 20e6}, kCalm), 2);
  EXPECT_DOUBLE_EQ(slowdown(kCalm, LatencyShape{}), 1);
}

TEST(LatencyShape, ApproachMovesAShareOfTheWay) {
  LatencyShape shape = kCalm;
  shape.approach({2e6, 8e6, 33e6, 20e6}, 0.1);
  EXPECT_DOUBLE_EQ(shape.p10, 1.1e6);
  EXPECT_DOUBLE_EQ(shape.p90, 24e6);
  EXPECT_DOUBLE_EQ(shape.avg, 11e6);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
