#include "rate_profile.h"

#include <gtest/gtest.h>

#include "distribution.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int count_until(RateProfile& profile, Duration end) {
  int count = 0;
  while (true) {
    const auto at = profile.advance(1.0);
    if (!at || *at >= end) return count;
    ++count;
  }
}

TEST(RateProfile, AConstantRateTicksEvenly) {
  RateProfile profile({{Duration(0), 100}}, RateShape::kSteps);
  for (int i = 1; i <= 1000; ++i) {
    const auto at = profile.advance(1.0);
    ASSERT_TRUE(at);
    EXPECT_NEAR(to_millis(*at), i * 10.0, 1e-3);
  }
}

TEST(RateProfile, StepsCountExactly) {
  RateProfile profile({{seconds(0), 100}, {seconds(10), 0}, {seconds(20), 1000}},
                      RateShape::kSteps);
  EXPECT_NEAR(count_until(profile, seconds(15)), 1000, 1);
  RateProfile again({{seconds(0), 100}, {seconds(10), 0}, {seconds(20), 1000}}, RateShape::kSteps);
  EXPECT_NEAR(count_until(again, seconds(21)), 2000, 1);
}

TEST(RateProfile, RampsIntegrateTheLine) {
  RateProfile up({{seconds(0), 0}, {seconds(10), 1000}}, RateShape::kRamps);
  EXPECT_NEAR(count_until(up, seconds(10)), 5000, 1);
  RateProfile down({{seconds(0), 1000}, {seconds(10), 0}}, RateShape::kRamps);
  EXPECT_NEAR(count_until(down, seconds(30)), 5000, 1);
  EXPECT_DOUBLE_EQ(up.at(seconds(5)), 500);
  EXPECT_DOUBLE_EQ(up.at(seconds(50)), 1000);
}

TEST(RateProfile, AProfileThatEndsAtZeroEnds) {
  RateProfile profile({{seconds(0), 10}, {seconds(1), 0}}, RateShape::kSteps);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(profile.advance(1.0));
  EXPECT_FALSE(profile.advance(2.0));
  EXPECT_FALSE(profile.advance(1.0));
  RateProfile none;
  EXPECT_FALSE(none.advance(1.0));
}

TEST(RateProfile, ExponentialAmountsGiveAPoissonStreamOfThatRate) {
  RateProfile profile({{seconds(0), 2000}}, RateShape::kSteps);
  Rng rng(2);
  int count = 0;
  for (;;) {
    const auto at = profile.advance(draw_unit_exponential(rng));
    if (*at >= seconds(100)) break;
    ++count;
  }
  EXPECT_NEAR(count, 200000, 1500);  // 3 sigma is 1342
}

TEST(Interpolate, IsStraightBetweenPointsAndFlatOutside) {
  const std::vector<RatePoint> points = {{seconds(10), 0.4}, {seconds(20), 0.9}};
  EXPECT_DOUBLE_EQ(interpolate(points, seconds(0)), 0.4);
  EXPECT_DOUBLE_EQ(interpolate(points, seconds(15)), 0.65);
  EXPECT_DOUBLE_EQ(interpolate(points, seconds(99)), 0.9);
  EXPECT_DOUBLE_EQ(interpolate({}, milliseconds(5)), 0);
}

}  // namespace
}  // namespace weir::sim
