#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "auto_limit.h"
#include "auto_limit_testing.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AutoLimit, OverloadAnswersShrinkItAndAFewOfThemDoNot) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  LimitSample w = model.window(policy);
  w.overload_count = w.sample_count / 50;  // 2 %: noise
  EXPECT_NE(policy.on_window(w).reason, LimitReason::kOverload);
  w = model.window(policy);
  w.overload_count = w.sample_count;
  LimitDecision decision = policy.on_window(w);
  EXPECT_EQ(decision.reason, LimitReason::kOverload);
  EXPECT_EQ(decision.limit, before * 7 / 8);  // less a quarter of the overload share
}

/// A window of a second with a few requests, far apart.
LimitSample calm_second(ServiceModel& model, std::uint32_t samples, Duration latency) {
  const LimitSample w{.opened_at = model.now,
                      .closed_at = model.now + seconds(1),
                      .sample_count = samples,
                      .latency_avg = latency,
                      .latency_p10 = latency,
                      .latency_p50 = latency,
                      .latency_p90 = latency,
                      .in_flight_max = 2};
  model.now += seconds(1);
  return w;
}

void fall_to_the_floor(AutoLimit& policy, ServiceModel& model) {
  for (int i = 0; i < 30; ++i) {
    const LimitSample w{
        .opened_at = model.now, .closed_at = model.now + seconds(1), .overload_count = 9};
    model.now += seconds(1);
    static_cast<void>(policy.on_window(w));
  }
  ASSERT_EQ(policy.limit(), 8U);
}

TEST(AutoLimit, AfterARushAnUnusedLimitIsBackWhereItStartedWithinFiveSeconds) {
  for (const std::uint32_t samples : {4U, 40U}) {
    ServiceModel model;
    model.workers = 200;
    const LimitConfig config = config_of();
    AutoLimit policy(config, Rng(1));
    learn(policy, model);
    fall_to_the_floor(policy, model);
    // A sixth second: what is above the start has to be shown by use.
    for (int second = 0; second < 6; ++second) {
      static_cast<void>(policy.on_window(calm_second(model, samples, model.time)));
      if (second >= 4) {
        EXPECT_EQ(policy.limit(), config.initial_limit) << samples;
      }
    }
  }
}

TEST(AutoLimit, ASlowServiceDoesNotGetItsLimitBackForNothing) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  fall_to_the_floor(policy, model);
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(policy.on_window(calm_second(model, 4, model.time * 5)));
  }
  EXPECT_EQ(policy.limit(), 8U);
  LimitSample full = calm_second(model, 4, model.time);
  full.refused_count = 1;
  static_cast<void>(policy.on_window(full));
  EXPECT_EQ(policy.limit(), 8U);
}

TEST(AutoLimit, OverloadAnswersThatFillTheRoomShrinkItToWhatWasAnsweredWell) {
  ServiceModel model;
  model.workers = 100;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  LimitSample w = model.window(policy);
  w.overload_count = w.sample_count * 2;
  w.sample_count = w.sample_count * 7 / 10;  // seven tenths of what was in flight
  EXPECT_NEAR(policy.on_window(w).limit, before * 0.7, before * 0.05);
}

TEST(AutoLimit, AnOutageHalvesItPerWindow) {
  ServiceModel model;
  model.workers = 100;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  LimitSample w = model.window(policy);
  w.overload_count = w.sample_count * 20;
  EXPECT_EQ(policy.on_window(w).limit, before / 2);
}

TEST(AutoLimit, OnlyOverloadAnswersAndNoSampleAtAllShrinkItToItsFloorAndNotBelow) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  for (int i = 0; i < 30; ++i) {
    LimitSample w{.opened_at = model.now, .closed_at = model.now + seconds(1), .overload_count = 9};
    model.now += seconds(1);
    static_cast<void>(policy.on_window(w));
  }
  EXPECT_EQ(policy.limit(), 8U);
}

TEST(AutoLimit, AfterAnOutageItReturnsToWhatWasGoodWithinASecond) {
  ServiceModel model;
  model.workers = 200;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  EXPECT_GE(policy.limit(), 200U);
  for (int i = 0; i < 20; ++i) {
    LimitSample w{.opened_at = model.now, .closed_at = model.now + seconds(1), .overload_count = 9};
    model.now += seconds(1);
    static_cast<void>(policy.on_window(w));
  }
  EXPECT_EQ(policy.limit(), 8U);
  run_for(policy, model, seconds(1));
  EXPECT_GE(policy.limit(), 190U);
}

TEST(AutoLimit, ASlowerServiceIsRelearnedAndGetsItsLimitBack) {
  ServiceModel model;
  model.workers = 200;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.time = milliseconds(20);
  run_for(policy, model, seconds(5));
  EXPECT_GE(policy.limit(), 190U);
  const LimitDecision decision = policy.on_window(model.window(policy));
  EXPECT_NEAR(to_millis(decision.baseline), 20, 2);
}

TEST(AutoLimit, AFasterServiceIsRelearnedToo) {
  ServiceModel model;
  model.time = milliseconds(40);
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.time = milliseconds(10);
  run_for(policy, model, seconds(90));
  const LimitDecision decision = policy.on_window(model.window(policy));
  EXPECT_NEAR(to_millis(decision.baseline), 10, 2);
  EXPECT_LE(policy.limit(), 30U);
}

TEST(AutoLimit, LostWorkersLowerTheLimit) {
  ServiceModel model;
  model.workers = 200;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.workers = 50;
  run_for(policy, model, seconds(10));
  EXPECT_LE(policy.limit(), 80U);
  EXPECT_GE(policy.limit(), 45U);
}

TEST(AutoLimit, AnOverloadThatLastsDoesNotBecomeTheBaseline) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  run_for(policy, model, std::chrono::minutes(30), [](const LimitDecision& d) {
    EXPECT_LE(d.limit, 30U);
    EXPECT_LE(to_millis(d.baseline), 11.5);
  });
}

/// The time that clients wait before they leave does not depend on the limit, like latency without
/// a queue: a stall during a probe must not be mistaken for a baseline.
TEST(AutoLimit, AStallIsNoBaselineWhereverItFalls) {
  for (int tenths = 0; tenths <= 60; ++tenths) {
    for (const int stall_seconds : {1, 2, 5}) {
      ServiceModel model;
      model.workers = 8;
      model.time = milliseconds(20);
      model.patience_s = 1;
      AutoLimit policy(config_of(), Rng(1));
      run_for(policy, model, milliseconds(100 * tenths));
      model.stalled = true;
      run_for(policy, model, seconds(stall_seconds));
      model.stalled = false;
      run_for(policy, model, seconds(10));
      EXPECT_LE(policy.limit(), 24U) << tenths << " tenths, " << stall_seconds << " s";
      EXPECT_GE(policy.limit(), 8U) << tenths << " tenths, " << stall_seconds << " s";
    }
  }
}

TEST(AutoLimit, AQueueLongerThanClientsWaitIsLeftByHalves) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.workers = 1;  // it was 16, and clients leave after 50 ms: five in flight are too many
  model.patience_s = 0.05;
  const std::uint32_t before = policy.limit();
  const LimitDecision decision = policy.on_window(model.window(policy));
  EXPECT_EQ(decision.reason, LimitReason::kQueueing);
  EXPECT_EQ(decision.limit, std::max(8U, before / 2));
}

TEST(AutoLimit, AfterAStallItReturnsToWhatWasGood) {
  ServiceModel model;
  model.workers = 300;
  model.patience_s = 1;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  model.stalled = true;
  run_for(policy, model, seconds(6));
  EXPECT_LT(policy.limit(), before / 2);
  model.stalled = false;
  run_for(policy, model, seconds(2));
  EXPECT_GE(policy.limit(), before * 9 / 10);
}

TEST(AutoLimit, ClientsThatLeaveAsTheyPleaseAreNoOverload) {
  ServiceModel model;
  model.workers = 100;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  int lowered = 0;
  for (int i = 0; i < 100; ++i) {
    LimitSample w = slower(model.window(policy), milliseconds(3));  // slower than usual
    w.abandoned_count = w.sample_count * 9 / 10;
    if (policy.on_window(w).reason == LimitReason::kQueueing) ++lowered;
  }
  EXPECT_LE(lowered, 1) << "one test: fewer places give fewer answers, so it is undone";
  EXPECT_GE(policy.limit(), before);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
