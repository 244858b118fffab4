#include "vegas_limit.h"

#include <chrono>
#include <limits>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

struct Seen {
  milliseconds latency{};
  std::uint32_t in_flight = 0;
};

LimitSample window_of(Seen seen) {
  return {.sample_count = 100, .latency_avg = seen.latency, .in_flight = seen.in_flight};
}

LimitConfig vegas_at(std::uint32_t limit) {
  return {.policy = LimitKind::kVegas, .initial_limit = limit};
}

TEST(Vegas, IncreaseOnLowQueue) {
  VegasLimit vegas(vegas_at(100), milliseconds(5));
  const LimitDecision decision = vegas.on_window(window_of({milliseconds(5), 10}));
  EXPECT_EQ(decision.limit, 101U);
  EXPECT_EQ(decision.reason, LimitReason::kGrow);
  EXPECT_EQ(decision.queue_estimate, 0.0);
  EXPECT_EQ(decision.baseline, milliseconds(5));
  EXPECT_EQ(vegas.limit(), 101U);
}

TEST(Vegas, DecreaseOnHighQueue) {
  VegasLimit vegas(vegas_at(100), milliseconds(5));
  const LimitDecision decision = vegas.on_window(window_of({milliseconds(50), 100}));
  EXPECT_EQ(decision.limit, 99U);
  EXPECT_EQ(decision.reason, LimitReason::kQueueing);
  EXPECT_DOUBLE_EQ(decision.queue_estimate, 90.0);
}

TEST(Vegas, RespectsMinLimit) {
  VegasLimit vegas(vegas_at(9), milliseconds(1));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(100), 100})).limit, 8U);
  // The second window is empty; a window full of slow requests also changes nothing.
  EXPECT_EQ(vegas.on_window({}).limit, 8U);
  const LimitDecision decision = vegas.on_window(window_of({milliseconds(100), 100}));
  EXPECT_EQ(decision.limit, 8U);
  EXPECT_EQ(decision.reason, LimitReason::kAtFloor);
}

// The published trace of the rule, where it follows the rule: windows 1, 2 and the single steps of
// windows 50, 51, 80 and 100. Between those it contradicts the rule: 49 calm windows from 128 give
// 177 at window 50, not 178; 28 more steps from 176 give 148 at window 80, not 64; 19 from 63 give
// 44 at window 100, not 45.
TEST(Vegas, FollowsThePublishedTraceStepByStep) {
  VegasLimit vegas(vegas_at(128));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(5), 50})).limit, 129U);
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(5), 50})).limit, 130U);
  for (int w = 3; w <= 49; ++w)
    static_cast<void>(vegas.on_window(window_of({milliseconds(5), 50})));
  EXPECT_EQ(vegas.limit(), 177U);

  VegasLimit spike(vegas_at(178), milliseconds(5));
  LimitDecision decision = spike.on_window(window_of({milliseconds(50), 178}));
  EXPECT_EQ(decision.limit, 177U);
  EXPECT_NEAR(decision.queue_estimate, 160, 0.5);
  decision = spike.on_window(window_of({milliseconds(45), 177}));
  EXPECT_EQ(decision.limit, 176U);
  EXPECT_NEAR(decision.queue_estimate, 157, 0.5);

  VegasLimit shrinking(vegas_at(64), milliseconds(5));
  decision = shrinking.on_window(window_of({milliseconds(8), 64}));
  EXPECT_EQ(decision.limit, 63U);
  EXPECT_DOUBLE_EQ(decision.queue_estimate, 24);

  VegasLimit stable(vegas_at(45), milliseconds(5));
  decision = stable.on_window(window_of({milliseconds(6), 45}));
  EXPECT_EQ(decision.limit, 45U);
  EXPECT_EQ(decision.reason, LimitReason::kHold);
  EXPECT_NEAR(decision.queue_estimate, 7.5, 1e-9);
}

TEST(Vegas, SpikeAfterCalmDescendsOneByOneToTheBand) {
  VegasLimit vegas(vegas_at(128), milliseconds(5));
  // The service holds 40 at 5 ms; above that, latency grows with the requests in flight.
  for (int w = 0; w < 200; ++w) {
    const std::uint32_t limit = vegas.limit();
    const double ms = limit <= 40 ? 5.0 : 5.0 * limit / 40.0;
    const LimitSample seen{.sample_count = 100,
                           .latency_avg = Duration(static_cast<std::int64_t>(ms * 1e6)),
                           .in_flight = limit};
    const LimitDecision decision = vegas.on_window(seen);
    EXPECT_LE(decision.limit, limit);
    EXPECT_GE(decision.limit + 1, limit);
  }
  EXPECT_EQ(vegas.limit(), 48U);  // 48 − 40 queue: not above beta
}

TEST(Vegas, EmptyWindowDecidesNothing) {
  VegasLimit vegas(vegas_at(100), milliseconds(5));
  const LimitDecision decision = vegas.on_window({.in_flight = 100});
  EXPECT_EQ(decision.limit, 100U);
  EXPECT_EQ(decision.reason, LimitReason::kNoSamples);
}

TEST(Vegas, BaselineIsTheSmallestWindowAverageAndNeverRises) {
  VegasLimit vegas(vegas_at(100));
  EXPECT_EQ(vegas.on_window({}).baseline, Duration(0));  // unknown
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(9), 1})).baseline, milliseconds(9));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(4), 1})).baseline, milliseconds(4));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(30), 1})).baseline, milliseconds(4));
}

TEST(Vegas, ZeroBaselineDecidesNothing) {
  VegasLimit vegas(vegas_at(100));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(0), 50})).limit, 100U);
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(-3), 50})).limit, 100U);
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(10), 50})).limit, 100U);  // it never rises
}

TEST(Vegas, AlphaAndBetaThemselvesHold) {
  VegasLimit vegas(vegas_at(100), milliseconds(5));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(10), 4})).reason, LimitReason::kHold);   // 2.0
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(10), 16})).reason, LimitReason::kHold);  // 8.0
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(10), 3})).reason, LimitReason::kGrow);
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(10), 17})).reason, LimitReason::kQueueing);
}

TEST(Vegas, StopsAtTheCeiling) {
  LimitConfig config = vegas_at(10);
  config.max_limit = 11;
  VegasLimit vegas(config, milliseconds(5));
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(5), 1})).limit, 11U);
  const LimitDecision decision = vegas.on_window(window_of({milliseconds(5), 1}));
  EXPECT_EQ(decision.limit, 11U);
  EXPECT_EQ(decision.reason, LimitReason::kAtCeiling);
}

TEST(Vegas, StartBelowTheMinimumMovesTheFloor) {
  VegasLimit vegas(vegas_at(4), milliseconds(1));
  EXPECT_EQ(vegas.limit(), 4U);
  EXPECT_EQ(vegas.on_window(window_of({milliseconds(100), 100})).reason, LimitReason::kAtFloor);
  EXPECT_EQ(vegas.limit(), 4U);
}

TEST(Vegas, NewBoundsApplyAtOnce) {
  VegasLimit vegas(vegas_at(100), milliseconds(5));
  vegas.set_bounds({.min = 8, .initial = 50, .max = 60});
  EXPECT_EQ(vegas.limit(), 60U);
  vegas.set_bounds({.min = 70, .initial = 80, .max = 90});
  EXPECT_EQ(vegas.limit(), 70U);
}

TEST(Vegas, StaysInBoundsAndStepsByOneWhateverItSees) {
  Rng rng(71);
  for (int run = 0; run < 200; ++run) {
    LimitConfig config;
    config.max_limit = static_cast<std::uint32_t>(rng.between(1, 16383));
    config.initial_limit = static_cast<std::uint32_t>(rng.between(1, config.max_limit));
    config.min_limit = static_cast<std::uint32_t>(rng.between(1, config.max_limit));
    ASSERT_TRUE(config.validate().empty());
    VegasLimit vegas(config);
    for (int w = 0; w < 500; ++w) {
      const std::uint32_t before = vegas.limit();
      const LimitSample seen{.sample_count = static_cast<std::uint32_t>(rng.below(3)),
                             .latency_avg = Duration(rng.between(0, 1'000'000'000)),
                             .in_flight = static_cast<std::uint32_t>(rng.below(20000))};
      const LimitDecision decision = vegas.on_window(seen);
      ASSERT_EQ(decision.limit, vegas.limit());
      ASSERT_GE(decision.limit, config.effective_min());
      ASSERT_LE(decision.limit, config.max_limit);
      ASSERT_LE(decision.limit > before ? decision.limit - before : before - decision.limit, 1U);
      ASSERT_GE(decision.queue_estimate, 0.0);
      ASSERT_LE(decision.queue_estimate, seen.in_flight);
    }
  }
}

TEST(Vegas, FactoryMakesIt) {
  const auto policy = make_limit_policy(vegas_at(77), Rng(1));
  EXPECT_EQ(policy->name(), "vegas");
  EXPECT_EQ(policy->limit(), 77U);
  EXPECT_EQ(policy->window_rules().duration, std::chrono::seconds(1));
  EXPECT_EQ(policy->window_rules().early_close_samples, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
