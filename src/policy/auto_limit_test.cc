#include "policy/auto_limit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A service with k workers that all take `time`, in windows: what a limiter would see of it. More
/// than k at once wait for each other, so everybody's latency grows in proportion.
struct Model {
  double workers = 16;
  Duration time = milliseconds(10);
  double demand = 1e9;  // requests per second that want in
  double p10_factor = 0.9;
  double p90_factor = 1.2;
  double patience_s = 1e6;  // clients leave after this
  bool stalled = false;     // nothing is answered
  TimePoint now = time_from_ns(1'000'000'000);

  LimitSample window(const AutoLimit& policy) {
    const double s = to_seconds(time);
    const double wanted = demand * s;
    const double in_flight = std::min<double>(policy.limit(), wanted);
    const double busy = std::min(in_flight, workers);
    const bool leave = stalled || in_flight * s / busy > patience_s;
    const double latency = leave ? patience_s : in_flight * s / busy;
    const double throughput = in_flight / latency;
    const double wait = latency - s;
    const WindowRules rules = policy.window_rules();
    const double enough = rules.early_close_samples == 0
                              ? 1e9
                              : static_cast<double>(rules.early_close_samples) / throughput;
    const double length =
        std::min(to_seconds(rules.duration), std::max(to_seconds(rules.duration_min), enough));
    LimitSample w;
    w.opened_at = now;
    now += from_seconds(length);
    w.closed_at = now;
    w.sample_count = static_cast<std::uint32_t>(throughput * length);
    w.latency_avg = from_seconds(latency);
    w.latency_p10 = from_seconds(s * p10_factor + wait);
    w.latency_p50 = from_seconds(s + wait);
    w.latency_p90 = from_seconds(s * p90_factor + wait);
    if (leave) {
      w.abandoned_count = w.sample_count;
      w.latency_p10 = w.latency_p50 = w.latency_p90 = from_seconds(latency);
    }
    w.latency_min = w.latency_p10;
    w.in_flight = w.in_flight_max = static_cast<std::uint32_t>(in_flight);
    w.refused_count = wanted > policy.limit() ? 100 : 0;
    return w;
  }

  static Duration from_seconds(double s) { return Duration(static_cast<std::int64_t>(s * 1e9)); }
};

/// Runs windows for a span of time; tells each decision to `look`.
void run_for(AutoLimit& policy, Model& model, Duration span,
             const std::function<void(const LimitDecision&)>& look = nullptr) {
  const TimePoint end = model.now + span;
  for (int i = 0; i < 100000 && model.now < end; ++i) {
    const LimitDecision decision = policy.on_window(model.window(policy));
    if (look) look(decision);
  }
}

LimitConfig config_of(std::uint32_t initial = 128) {
  LimitConfig config;
  config.initial_limit = initial;
  return config;
}

void learn(AutoLimit& policy, Model& model) {
  run_for(policy, model, seconds(5));
}

TEST(AutoLimit, NothingIsDecidedBeforeTheSlowAnswersAreIn) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  LimitSample quick = model.window(policy);  // half of what is in flight has not come back
  quick.latency_avg = quick.latency_avg / 2;
  const LimitDecision first = policy.on_window(quick);
  EXPECT_EQ(first.limit, 128U);
  EXPECT_EQ(first.reason, LimitReason::kHold);
  EXPECT_EQ(first.baseline, Duration(0));
}

TEST(AutoLimit, AnOverloadFromTheStartIsProbedAtOnce) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  LimitSample full = model.window(policy);
  full.refused_count = full.sample_count + 1;
  const LimitDecision first = policy.on_window(full);
  EXPECT_EQ(first.limit, 89U);
  EXPECT_EQ(first.reason, LimitReason::kProbe);
}

TEST(AutoLimit, PlacesHeldByOthersThanTheAnsweredAreNoOverload) {
  Model model;
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

/// The decisions until shrinking was found not to help for the first time.
LimitDecision until_first_doubt(AutoLimit& policy, Model& model) {
  bool shrunk = false;
  for (int i = 0; i < 1000; ++i) {
    const LimitSample window = model.window(policy);
    const LimitDecision decision = policy.on_window(window);
    const bool stale = window.in_flight_max > policy.limit();
    if (shrunk && !stale && decision.reason == LimitReason::kHold && decision.queue_estimate > 0) {
      return decision;
    }
    shrunk = shrunk || decision.reason == LimitReason::kQueueing;
  }
  ADD_FAILURE() << "it never shrank";
  return {};
}

TEST(AutoLimit, OneWindowThatSaysSlowerIsNotBelieved) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  model.time = milliseconds(30);
  const LimitDecision doubt = until_first_doubt(policy, model);
  EXPECT_LT(policy.limit(), before);
  EXPECT_LT(doubt.baseline, milliseconds(11));
  model.time = milliseconds(10);  // it was a moment's noise
  run_for(policy, model, seconds(3), [&](const LimitDecision& d) {
    EXPECT_LT(d.baseline, milliseconds(11));
    EXPECT_LE(d.limit, before * 5 / 4);
  });
}

TEST(AutoLimit, TwoWindowsThatSaySlowerAreBelieved) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.time = milliseconds(30);
  static_cast<void>(until_first_doubt(policy, model));
  const LimitDecision second = policy.on_window(model.window(policy));
  EXPECT_EQ(second.reason, LimitReason::kProbeEnded);
  EXPECT_GT(second.baseline, milliseconds(25));
}

TEST(AutoLimit, ComesDownFromALimitThatIsFarTooHigh) {
  Model model;  // 16 workers behind the default of 128, and a queue that is there from the start
  AutoLimit policy(config_of(), Rng(1));
  run_for(policy, model, seconds(2));
  EXPECT_GE(policy.limit(), 16U);
  EXPECT_LE(policy.limit(), 30U);
}

TEST(AutoLimit, GrowsExponentiallyFromALimitThatIsFarTooLow) {
  Model model;
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
      Model model;
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
  Model model;
  model.demand = 100;  // one in flight
  AutoLimit policy(config_of(), Rng(1));
  run_for(policy, model, seconds(60), [](const LimitDecision& d) {
    EXPECT_LE(d.limit, 128U);
    EXPECT_NE(d.reason, LimitReason::kGrow);
  });
}

TEST(AutoLimit, AThinWindowDecidesNothingAndMakesTheNextOneLonger) {
  Model model;
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
  Model model;
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
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  for (int i = 0; i < 50; ++i) {
    LimitSample w = model.window(policy);
    if (i % 2 == 0) w.latency_p50 = milliseconds(80);
    EXPECT_NE(policy.on_window(w).reason, LimitReason::kQueueing);
  }
}

/// 80 of 100 workers busy behind a limit of 128 that nobody has needed yet.
Model calm_model() {
  Model model;
  model.workers = 100;
  model.demand = 8000;
  return model;
}

LimitSample slower(LimitSample w, Duration wait) {
  w.latency_avg += wait;
  w.latency_p10 += wait;
  w.latency_p50 += wait;
  w.latency_p90 += wait;
  return w;
}

TEST(AutoLimit, OneWindowALittleAboveTheBearableIsNotBelievedTwoAre) {
  Model model = calm_model();
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

TEST(AutoLimit, APeakThatTouchesTheLimitIsNoReasonToProbeACrowdIs) {
  for (const bool crowd : {false, true}) {
    Model model = calm_model();
    AutoLimit policy(config_of(), Rng(1));
    learn(policy, model);
    int windows = 0;
    for (LimitReason reason{}; reason != LimitReason::kProbe && windows < 50; ++windows) {
      LimitSample w = model.window(policy);
      w.refused_count = crowd ? w.sample_count / 2 : 1;
      reason = policy.on_window(w).reason;
    }
    EXPECT_EQ(windows, crowd ? 2 : 6);
  }
}

TEST(AutoLimit, OverloadAnswersShrinkItAndAFewOfThemDoNot) {
  Model model;
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
  EXPECT_EQ(decision.limit, before * 7 / 8);  // a quarter of their share
}

TEST(AutoLimit, OverloadAnswersThatFillTheRoomShrinkItToWhatWasAnsweredWell) {
  Model model;
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
  Model model;
  model.workers = 100;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  LimitSample w = model.window(policy);
  w.overload_count = w.sample_count * 20;
  EXPECT_EQ(policy.on_window(w).limit, before / 2);
}

TEST(AutoLimit, OnlyOverloadAnswersAndNoSampleAtAllShrinkItToItsFloorAndNotBelow) {
  Model model;
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
  Model model;
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
  Model model;
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
  Model model;
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
  Model model;
  model.workers = 200;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.workers = 50;
  run_for(policy, model, seconds(10));
  EXPECT_LE(policy.limit(), 80U);
  EXPECT_GE(policy.limit(), 45U);
}

TEST(AutoLimit, AnOverloadThatLastsDoesNotBecomeTheBaseline) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  run_for(policy, model, std::chrono::minutes(30), [](const LimitDecision& d) {
    EXPECT_LE(d.limit, 30U);
    EXPECT_LE(to_millis(d.baseline), 11.5);
  });
}

/// What clients wait before they leave is the same at any limit, as latency is where nothing
/// queues: a stall in the middle of a probe must not be taken for that.
TEST(AutoLimit, AStallIsNoBaselineWhereverItFalls) {
  for (int tenths = 0; tenths <= 60; ++tenths) {
    for (const int stall_seconds : {1, 2, 5}) {
      Model model;
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
  Model model;
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
  Model model;
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
  Model model;
  model.workers = 100;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  for (int i = 0; i < 100; ++i) {
    LimitSample w = slower(model.window(policy), milliseconds(3));  // who stays longer than usual
    w.abandoned_count = w.sample_count * 9 / 10;
    EXPECT_NE(policy.on_window(w).reason, LimitReason::kQueueing);
  }
  EXPECT_GE(policy.limit(), before);
}

TEST(AutoLimit, ProbesComeEveryThirtyToSixtySecondsAndLastAFewRoundTrips) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  std::vector<double> begun;
  Duration probing{};
  TimePoint last = model.now;
  bool inside = false;
  run_for(policy, model, seconds(600), [&](const LimitDecision& d) {
    const bool probe = d.reason == LimitReason::kProbe;
    if (probe && !inside) begun.push_back(to_seconds(model.now.time_since_epoch()));
    if (inside) probing += model.now - last;
    inside = probe;
    last = model.now;
  });
  ASSERT_GE(begun.size(), 9U);
  for (std::size_t i = 1; i < begun.size(); ++i) {
    EXPECT_GE(begun[i] - begun[i - 1], 29) << i;
    EXPECT_LE(begun[i] - begun[i - 1], 65) << i;
  }
  EXPECT_LT(to_seconds(probing), 600 * 0.02);
}

TEST(AutoLimit, ProbesOfDifferentInstancesDoNotMeet) {
  std::set<std::int64_t> first_probes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Model model;
    AutoLimit policy(config_of(), Rng(seed));
    run_for(policy, model, seconds(5));
    std::int64_t at = 0;
    run_for(policy, model, seconds(70), [&](const LimitDecision& d) {
      if (at == 0 && d.reason == LimitReason::kProbe) at = to_ns(model.now) / 1'000'000'000;
    });
    first_probes.insert(at);
  }
  EXPECT_GE(first_probes.size(), 12U);
}

TEST(AutoLimit, OnlySamplesStartedInsideAProbeCount) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  run_for(policy, model, seconds(70), [&](const LimitDecision& d) {
    if (d.reason == LimitReason::kProbe) {
      EXPECT_GT(d.samples_from, TimePoint{});
      EXPECT_LE(d.samples_from, model.now);
    }
  });
}

TEST(AutoLimit, AProbeWithoutDemandGivesTheLimitBack) {
  Model model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  bool probed = false;
  run_for(policy, model, seconds(70), [&](const LimitDecision& d) {
    if (d.reason == LimitReason::kProbe) {
      probed = true;
      model.demand = 300;  // three in flight: everybody went to lunch
    }
  });
  EXPECT_TRUE(probed);
  EXPECT_GE(policy.limit(), before);
}

TEST(AutoLimit, IsNotStuckAtItsFloorWithAStaleBaseline) {
  Model model;
  model.workers = 100;
  model.demand = 200;
  AutoLimit policy(config_of(8), Rng(1));
  learn(policy, model);  // the baseline of two in flight: 10 ms
  model.time = milliseconds(60);
  model.demand = 1e9;
  run_for(policy, model, seconds(30));
  EXPECT_GE(policy.limit(), 90U);
}

TEST(AutoLimit, AnOldPeakIsForgotten) {
  Model model;
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
  Model model;
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
  Model model;
  model.time = seconds(5);
  AutoLimit policy(config_of(32), Rng(1));
  run_for(policy, model, seconds(200));
  EXPECT_GE(policy.window_rules().duration, seconds(5));
  EXPECT_GE(policy.limit(), 15U);
  EXPECT_LE(policy.limit(), 32U);
}

TEST(AutoLimit, EqualConstructionAndEqualWindowsGiveEqualLimits) {
  Model a;
  Model b;
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
  Model model;
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
}  // namespace weir
