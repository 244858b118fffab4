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

/// Runs until shrinking is first found not to help; returns that decision.
LimitDecision until_first_doubt(AutoLimit& policy, ServiceModel& model) {
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

TEST(AutoLimit, AnOverloadFromTheStartIsProbedAtOnce) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  LimitSample full = model.window(policy);
  full.refused_count = full.sample_count + 1;
  const LimitDecision first = policy.on_window(full);
  EXPECT_EQ(first.limit, 89U);
  EXPECT_EQ(first.reason, LimitReason::kProbe);
}

TEST(AutoLimit, OneWindowThatSaysSlowerIsNotBelieved) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  model.time = milliseconds(30);
  const LimitDecision doubt = until_first_doubt(policy, model);
  EXPECT_LT(policy.limit(), before);
  EXPECT_LT(doubt.baseline, milliseconds(11));
  model.time = milliseconds(10);  // it was short noise
  run_for(policy, model, seconds(3), [&](const LimitDecision& d) {
    EXPECT_LT(d.baseline, milliseconds(11));
    EXPECT_LE(d.limit, before * 5 / 4);
  });
}

TEST(AutoLimit, TwoWindowsThatSaySlowerAreBelieved) {
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  model.time = milliseconds(30);
  static_cast<void>(until_first_doubt(policy, model));
  const LimitDecision second = policy.on_window(model.window(policy));
  EXPECT_EQ(second.reason, LimitReason::kProbeEnded);
  EXPECT_GT(second.baseline, milliseconds(25));
}

TEST(AutoLimit, APeakThatTouchesTheLimitIsNoReasonToProbeACrowdIs) {
  for (const bool crowd : {false, true}) {
    ServiceModel model = calm_model();
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

TEST(AutoLimit, AnUnclearTestUpwardsIsMeasuredAgain) {
  for (const int unclear : {1, 2}) {
    ServiceModel model;
    model.workers = 5000;
    model.p10_factor = 0.3;  // latencies differ: the first test goes up
    model.p90_factor = 2;
    AutoLimit policy(config_of(), Rng(1));
    for (int i = 0; i < 20 && policy.limit() == 128; ++i) {
      static_cast<void>(policy.on_window(model.window(policy)));
    }
    ASSERT_EQ(policy.limit(), 256U);
    static_cast<void>(policy.on_window(model.window(policy)));  // contains answers from before
    for (int i = 0; i < 2; ++i) {
      LimitSample window = model.window(policy);
      if (i < unclear) window.sample_count = window.sample_count * 3 / 4;
      static_cast<void>(policy.on_window(window));
    }
    EXPECT_EQ(policy.limit(), unclear == 1 ? 256U : 179U);
  }
}

TEST(AutoLimit, ProbesComeEveryThirtyToSixtySecondsAndLastAFewRoundTrips) {
  ServiceModel model;
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
    ServiceModel model;
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
  ServiceModel model;
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
  ServiceModel model;
  AutoLimit policy(config_of(), Rng(1));
  learn(policy, model);
  const std::uint32_t before = policy.limit();
  bool probed = false;
  run_for(policy, model, seconds(70), [&](const LimitDecision& d) {
    if (d.reason == LimitReason::kProbe) {
      probed = true;
      model.demand = 300;  // three in flight: almost no load
    }
  });
  EXPECT_TRUE(probed);
  EXPECT_GE(policy.limit(), before);
}

TEST(AutoLimit, IsNotStuckAtItsFloorWithAStaleBaseline) {
  ServiceModel model;
  model.workers = 100;
  model.demand = 200;
  AutoLimit policy(config_of(8), Rng(1));
  learn(policy, model);  // the baseline of two in flight: 10 ms
  model.time = milliseconds(60);
  model.demand = 1e9;
  run_for(policy, model, seconds(30));
  EXPECT_GE(policy.limit(), 90U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
