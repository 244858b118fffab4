#include "gradient2_limit.h"

#include <chrono>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

LimitSample window(milliseconds avg, std::uint32_t in_flight) {
  return {
      .sample_count = 100, .latency_avg = avg, .in_flight = in_flight, .in_flight_max = in_flight};
}

LimitConfig gradient2_at(std::uint32_t limit) {
  return {.policy = LimitKind::kGradient2, .initial_limit = limit};
}

TEST(Gradient2, GrowsByItsHeadroomWhileLatencyIsSteady) {
  Gradient2Limit limit(gradient2_at(100));
  // 0.8 × 100 + 0.2 × (100 × 1 + 4)
  EXPECT_EQ(limit.on_window(window(milliseconds(10), 100)).limit, 100U);  // 100.8
  EXPECT_EQ(limit.on_window(window(milliseconds(10), 100)).limit, 101U);  // 101.6
  EXPECT_EQ(limit.on_window(window(milliseconds(10), 100)).reason, LimitReason::kGrow);
}

TEST(Gradient2, ShrinksByAtMostTheSmoothedHalf) {
  Gradient2Limit limit(gradient2_at(100));
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(limit.on_window(window(milliseconds(10), 200)));
  }
  const double before = limit.limit();
  const LimitDecision decision = limit.on_window(window(milliseconds(1000), 200));
  EXPECT_EQ(decision.reason, LimitReason::kQueueing);
  EXPECT_NEAR(decision.limit, before * 0.9 + 0.8, 1.5);
}

TEST(Gradient2, ToleratesOneAndAHalfTimesTheLongAverage) {
  Gradient2Limit limit(gradient2_at(100));
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(limit.on_window(window(milliseconds(10), 200)));
  }
  EXPECT_EQ(limit.on_window(window(milliseconds(14), 200)).reason, LimitReason::kGrow);
}

TEST(Gradient2, AnUnusedLimitStaysWhereItIs) {
  Gradient2Limit limit(gradient2_at(100));
  const LimitDecision decision = limit.on_window(window(milliseconds(10), 49));
  EXPECT_EQ(decision.limit, 100U);
  EXPECT_EQ(decision.reason, LimitReason::kNotUsed);
}

TEST(Gradient2, AnEmptyWindowDecidesNothing) {
  Gradient2Limit limit(gradient2_at(100));
  EXPECT_EQ(limit.on_window({}).reason, LimitReason::kNoSamples);
}

// The reason why it is not the default: a lasting overload becomes the new normal.
TEST(Gradient2, ItsLongAverageFollowsAnOverload) {
  Gradient2Limit limit(gradient2_at(100));
  for (int i = 0; i < 30; ++i) {
    static_cast<void>(limit.on_window(window(milliseconds(10), 200)));
  }
  for (int i = 0; i < 2000; ++i) {
    static_cast<void>(limit.on_window(window(milliseconds(100), 2000)));
  }
  EXPECT_EQ(limit.on_window(window(milliseconds(100), 2000)).reason, LimitReason::kAtCeiling);
  EXPECT_EQ(limit.limit(), 1024U);
}

TEST(Gradient2, TheLongAverageComesDownQuicklyFromASlowSpell) {
  Gradient2Limit limit(gradient2_at(100));
  for (int i = 0; i < 50; ++i) {
    static_cast<void>(limit.on_window(window(milliseconds(1000), 200)));
  }
  LimitDecision decision;
  for (int i = 0; i < 100; ++i) decision = limit.on_window(window(milliseconds(10), 200));
  EXPECT_LT(decision.baseline, milliseconds(40));
}

TEST(Gradient2, StaysInBoundsWhateverItSees) {
  Rng rng(5);
  LimitConfig config = gradient2_at(50);
  config.min_limit = 20;
  config.max_limit = 90;
  Gradient2Limit limit(config);
  for (int i = 0; i < 5000; ++i) {
    const auto latency = milliseconds(rng.between(0, 2000));
    const auto decision =
        limit.on_window(window(latency, static_cast<std::uint32_t>(rng.below(300))));
    ASSERT_GE(decision.limit, 20U);
    ASSERT_LE(decision.limit, 90U);
    ASSERT_EQ(decision.limit, limit.limit());
  }
  limit.set_bounds({.min = 100, .initial = 100, .max = 120});
  EXPECT_EQ(limit.limit(), 100U);
}

TEST(Gradient2, FactoryMakesIt) {
  const auto policy = make_limit_policy(gradient2_at(77), Rng(1));
  EXPECT_EQ(policy->name(), "gradient2");
  EXPECT_EQ(policy->limit(), 77U);
}

TEST(Gradient2, OverloadAnswersShrinkItByTheirShareUpToHalf) {
  struct Row {
    std::uint32_t good, overloaded, limit;
  };
  for (const Row& row : {Row{0, 50, 50}, Row{50, 50, 75}, Row{80, 20, 90}, Row{100, 0, 100}}) {
    Gradient2Limit gradient({.policy = LimitKind::kGradient2, .initial_limit = 100});
    const LimitDecision decision = gradient.on_window({.sample_count = row.good,
                                                       .latency_avg = std::chrono::milliseconds(5),
                                                       .in_flight_max = 10,
                                                       .overload_count = row.overloaded});
    EXPECT_EQ(decision.limit, row.limit);
    EXPECT_EQ(decision.reason == LimitReason::kOverload, row.overloaded > 0);
  }
}

TEST(Gradient2, OverloadAnswersNeverShrinkItBelowTheFloor) {
  Gradient2Limit gradient({.policy = LimitKind::kGradient2, .initial_limit = 100, .min_limit = 8});
  LimitDecision decision;
  for (int i = 0; i < 10; ++i) decision = gradient.on_window({.overload_count = 100});
  EXPECT_EQ(decision.limit, 8U);
  EXPECT_EQ(decision.reason, LimitReason::kAtFloor);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
