#include "auto_limit.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

#include "auto_limit_testing.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AutoLimit, NothingIsDecidedBeforeTheSlowAnswersAreIn) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  LimitSample quick = model.window(policy);  // half of what is in flight is not answered yet
  quick.latency_avg = quick.latency_avg / 2;
  const LimitDecision first = policy.on_window(quick);
  EXPECT_EQ(first.limit, 128U);
  EXPECT_EQ(first.reason, LimitReason::kHold);
  EXPECT_EQ(first.baseline, quick.latency_avg) << "stands for it until one is known";
}

TEST(AutoLimit, PlacesHeldByOthersThanTheAnsweredAreNoOverload) {
  ServiceModel model;
  model.demand = 1000;  // 10 in flight
  AutoLimit policy(config_of(), Rng(1));
  run_for(policy, model, seconds(1));
  LimitSample clogged = model.window(policy);  // slow uploads fill the rest
  clogged.in_flight = clogged.in_flight_max = 116;
  clogged.refused_count = 4 * clogged.sample_count;
  const LimitDecision decision = policy.on_window(clogged);
  EXPECT_EQ(decision.reason, LimitReason::kHold);
  EXPECT_EQ(decision.limit, 128U);
}

TEST(AutoLimit, ComesDownFromALimitThatIsFarTooHigh) {
  ServiceModel model;  // 16 workers and the default limit of 128: a queue from the start
  AutoLimit policy(config_of(), Rng(1));
  run_for(policy, model, seconds(2));
  EXPECT_GE(policy.limit(), 16U);
  EXPECT_LE(policy.limit(), 30U);
}

TEST(AutoLimit, GrowsExponentiallyFromALimitThatIsFarTooLow) {
  ServiceModel model;
  model.workers = 800;
  AutoLimit policy(config_of(32), Rng(1));
  bool doubled = false;
  run_for(policy, model, seconds(2),
          [&](const LimitDecision& d) { doubled = doubled || d.reason == LimitReason::kStarting; });
  EXPECT_TRUE(doubled);
  EXPECT_GE(policy.limit(), 800U);
  EXPECT_LE(policy.limit(), 1024U);
}

TEST(AutoLimit, FindsTheSameLimitFromBelowAndFromAbove) {
  for (const double workers : {12.0, 40.0, 150.0, 500.0}) {
    for (const std::uint32_t initial : {8U, 64U, 1000U}) {
      ServiceModel model;
      model.workers = workers;
      AutoLimit policy(config_of(initial), Rng(3));
      run_for(policy, model, seconds(20));
      EXPECT_GE(policy.limit(), workers * 0.95) << workers << " from " << initial;
      EXPECT_LE(policy.limit(), workers + 3 * std::sqrt(workers) + workers * 0.2)
          << workers << " from " << initial;
    }
  }
}

TEST(AutoLimit, AnUnusedLimitDoesNotGrow) {
  ServiceModel model;
  model.demand = 100;  // one in flight
  AutoLimit policy(config_of(), Rng(1));
  run_for(policy, model, seconds(60), [](const LimitDecision& d) {
    EXPECT_LE(d.limit, 128U);
    EXPECT_NE(d.reason, LimitReason::kGrow);
  });
}

TEST(AutoLimit, AThinWindowDecidesNothingAndMakesTheNextOneLonger) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  const Duration length = policy.window_rules().duration;
  LimitSample thin = model.window(policy);
  thin.sample_count = 3;
  thin.latency_p10 = thin.latency_p50 = thin.latency_p90 = seconds(5);
  const LimitDecision decision = policy.on_window(thin);
  EXPECT_EQ(decision.reason, LimitReason::kNoSamples);
  EXPECT_EQ(decision.limit, before);
  EXPECT_GT(policy.window_rules().duration, length);
}

TEST(AutoLimit, AFewSlowCallsAreNoQueue) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  for (int i = 0; i < 50; ++i) {
    LimitSample w = model.window(policy);
    w.latency_p90 = seconds(1);
    w.latency_avg += milliseconds(30);
    EXPECT_NE(policy.on_window(w).reason, LimitReason::kQueueing);
  }
  EXPECT_GE(policy.limit(), before);
}

TEST(AutoLimit, AMedianThatJumpsBetweenTwoRoutesIsNoQueue) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  for (int i = 0; i < 50; ++i) {
    LimitSample w = model.window(policy);
    if (i % 2 == 0) w.latency_p50 = milliseconds(80);
    EXPECT_NE(policy.on_window(w).reason, LimitReason::kQueueing);
  }
}

TEST(AutoLimit, OneWindowALittleAboveTheBearableIsNotBelievedTwoAre) {
  ServiceModel model = calm_model();
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  for (int i = 0; i < 10; ++i) {
    const LimitDecision doubted = policy.on_window(slower(model.window(policy), milliseconds(5)));
    EXPECT_EQ(doubted.reason, LimitReason::kHold);
    EXPECT_GT(doubted.queue_estimate, 20);
    EXPECT_EQ(policy.on_window(model.window(policy)).limit, 128U);
  }
  static_cast<void>(policy.on_window(slower(model.window(policy), milliseconds(5))));
  EXPECT_EQ(policy.on_window(slower(model.window(policy), milliseconds(5))).reason,
            LimitReason::kQueueing);
}

TEST(AutoLimit, AnOldPeakIsForgotten) {
  ServiceModel model;
  model.workers = 900;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  EXPECT_GE(policy.limit(), 800U);
  model.demand = 200;
  bool bound = false;
  run_for(policy, model, std::chrono::minutes(30),
          [&](const LimitDecision& d) { bound = bound || d.reason == LimitReason::kPeakBound; });
  EXPECT_TRUE(bound);
  EXPECT_EQ(policy.limit(), 128U);  // the initial limit, as after a restart
}

TEST(AutoLimit, WindowsCoverTwoRoundTripsAndCloseEarlyWhenTheyKnowEnough) {
  ServiceModel model;
  model.p10_factor = 0.1;
  model.p90_factor = 2.3;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  run_for(policy, model, seconds(1));
  const WindowRules rules = policy.window_rules();
  EXPECT_GE(rules.duration_min, milliseconds(20));
  EXPECT_LE(rules.duration_min, milliseconds(60));
  EXPECT_GE(rules.early_close_samples, 128U);
  EXPECT_EQ(rules.duration, seconds(1));
}

TEST(AutoLimit, ASlowServiceGetsLongWindows) {
  ServiceModel model;
  model.time = seconds(5);
  AutoLimit policy(config_of(32), Rng(1));
  run_for(policy, model, seconds(200));
  EXPECT_GE(policy.window_rules().duration, seconds(5));
  EXPECT_GE(policy.limit(), 15U);
  EXPECT_LE(policy.limit(), 32U);
}

TEST(AutoLimit, EqualConstructionAndEqualWindowsGiveEqualLimits) {
  ServiceModel a;
  ServiceModel b;
  AutoLimit first(config_of(), Rng(9));
  AutoLimit second(config_of(), Rng(9));
  for (int i = 0; i < 3000; ++i) {
    const LimitDecision x = first.on_window(a.window(first));
    const LimitDecision y = second.on_window(b.window(second));
    ASSERT_EQ(x.limit, y.limit);
    ASSERT_EQ(x.reason, y.reason);
    ASSERT_EQ(x.baseline, y.baseline);
  }
}

TEST(AutoLimit, NewBoundsApplyAtOnce) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  policy.set_bounds({.min = 50, .initial = 60, .max = 90});
  EXPECT_EQ(policy.limit(), 50U);
  policy.set_bounds({.min = 2, .initial = 3, .max = 4});
  EXPECT_EQ(policy.limit(), 4U);
}

TEST(AutoLimit, StaysInBoundsWhateverItSees) {
  Rng rng(77);
  for (int run = 0; run < 100; ++run) {
    LimitConfig config;
    config.max_limit = static_cast<std::uint32_t>(rng.between(1, 16383));
    config.initial_limit = static_cast<std::uint32_t>(rng.between(1, config.max_limit));
    config.min_limit = static_cast<std::uint32_t>(rng.between(1, config.max_limit));
    AutoLimit policy(config, rng.fork());
    TimePoint now = time_from_ns(1);
    for (int i = 0; i < 300; ++i) {
      LimitSample w;
      w.opened_at = now;
      now += Duration(rng.between(0, 3'000'000'000));
      w.closed_at = now;
      w.sample_count = static_cast<std::uint32_t>(rng.below(2000));
      w.latency_p10 = Duration(rng.between(0, 100'000'000));
      w.latency_p50 = w.latency_p10 + Duration(rng.between(0, 100'000'000));
      w.latency_p90 = w.latency_p50 + Duration(rng.between(0, 100'000'000));
      w.latency_avg = Duration(rng.between(0, 300'000'000));
      w.in_flight_max = static_cast<std::uint32_t>(rng.below(20000));
      w.in_flight = static_cast<std::uint32_t>(rng.below(w.in_flight_max + 1));
      w.overload_count = rng.chance(0.1) ? static_cast<std::uint32_t>(rng.below(500)) : 0;
      w.refused_count = static_cast<std::uint32_t>(rng.below(3));
      const LimitDecision decision = policy.on_window(w);
      ASSERT_GE(decision.limit, std::min(config.min_limit, config.initial_limit));
      ASSERT_LE(decision.limit, config.max_limit);
      ASSERT_GE(decision.queue_estimate, 0);
      const WindowRules rules = policy.window_rules();
      ASSERT_GT(rules.duration.count(), 0);
      ASSERT_LE(rules.duration, seconds(30));
      ASSERT_LE(rules.duration_min, rules.duration);
    }
  }
}

TEST(AutoLimit, FactoryMakesIt) {
  const auto policy = make_limit_policy(config_of(77), Rng(1));
  EXPECT_EQ(policy->name(), "auto");
  EXPECT_EQ(policy->limit(), 77U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
