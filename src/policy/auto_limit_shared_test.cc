// AutoLimit before a service that others use too. Here the others are part of the model: what this
// gateway gives up, they take.
#include <chrono>

#include <gtest/gtest.h>

#include "auto_limit.h"
#include "auto_limit_testing.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A gateway whose probes see a latency of their own: 40 ms while the others keep the service full,
/// 10 ms if they lower their limits too.
struct Gateway {
  AutoLimit policy{config_of(64), Rng(1)};
  ServiceModel model{.workers = 1e9, .time = milliseconds(40)};
  BaselineNews news{};

  BaselineReport exchange(Duration probe_in, std::optional<ServiceBaseline> shared = {}) {
    news = {.at = model.now,
            .shared = shared,
            .probe_at = model.now + probe_in,
            .full = 10,
            .limit_mean = static_cast<double>(policy.limit())};
    return policy.exchange(news);
  }
  BaselineReport hear_again() {
    news.at = model.now;
    return policy.exchange(news);
  }
  /// Windows until the common probe has begun.
  void until_probe() {
    for (int i = 0; i < 1000; ++i) {
      if (policy.on_window(model.window(policy)).reason == LimitReason::kProbe) return;
    }
    ADD_FAILURE() << "no probe began";
  }
};

ServiceBaseline truth(TimePoint at) {
  return {milliseconds(9), milliseconds(10), milliseconds(12), milliseconds(10), at};
}

/// What a gateway takes for the baseline that has measured while the others kept the service full.
ServiceBaseline busy(TimePoint at) {
  return {milliseconds(36), milliseconds(40), milliseconds(48), milliseconds(40), at};
}

TEST(AutoLimitShared, WhatIsMeasuredAloneIsNotReportedAndACommonProbeIsWanted) {
  Gateway g;
  EXPECT_FALSE(g.exchange(seconds(8)).wants_probe);
  bool measured = false;
  run_for(g.policy, g.model, seconds(2), [&measured](const LimitDecision& d) {
    measured = measured || d.reason == LimitReason::kProbeEnded;
  });
  EXPECT_TRUE(measured);
  const BaselineReport report = g.hear_again();
  EXPECT_TRUE(report.wants_probe);
  EXPECT_TRUE(report.full);
  EXPECT_EQ(report.limit, g.policy.limit());
  EXPECT_FALSE(report.measured.has_value());
}

TEST(AutoLimitShared, TheProbeBeginsAtTheCommonInstant) {
  Gateway g;
  const TimePoint at = g.model.now + milliseconds(3456);
  static_cast<void>(g.exchange(milliseconds(3456), busy(g.model.now)));
  g.until_probe();
  EXPECT_GE(g.model.now, at);
  EXPECT_LT(g.model.now, at + milliseconds(50));
  EXPECT_GT(g.hear_again().limit, g.policy.limit()) << "that before the probe";
}

TEST(AutoLimitShared, NewsOfTheNextProbeDoesNotCancelTheOneThatIsDue) {
  Gateway g;
  static_cast<void>(g.exchange(seconds(2), busy(g.model.now)));
  run_for(g.policy, g.model, milliseconds(1900));
  g.news.at = g.news.probe_at + milliseconds(1);
  g.news.probe_at += seconds(45);
  static_cast<void>(g.policy.exchange(g.news));
  bool probed = false;
  run_for(g.policy, g.model, milliseconds(200), [&probed](const LimitDecision& d) {
    probed = probed || d.reason == LimitReason::kProbe;
  });
  EXPECT_TRUE(probed);
}

TEST(AutoLimitShared, AMeasuredBaselineIsReported) {
  Gateway g;
  static_cast<void>(g.exchange(seconds(2), busy(g.model.now)));
  g.until_probe();
  g.model.time = milliseconds(10);  // the others have lowered theirs
  run_for(g.policy, g.model, seconds(2));
  const BaselineReport report = g.hear_again();
  ASSERT_TRUE(report.measured.has_value());
  EXPECT_EQ(report.measured->p50, milliseconds(10));
  EXPECT_FALSE(report.wants_probe);
  // The news are the same as before the probe, and count again.
  EXPECT_GT(g.policy.on_window(g.model.window(g.policy)).baseline, milliseconds(30));
}

TEST(AutoLimitShared, WhatIsHeardCountsAtOnce) {
  Gateway g;
  static_cast<void>(g.exchange(seconds(30), truth(g.model.now)));
  const LimitDecision first = g.policy.on_window(g.model.window(g.policy));
  EXPECT_EQ(first.baseline, milliseconds(10));
  EXPECT_GT(first.queue_estimate, 40) << "three quarters of the latency are a queue";
  run_for(g.policy, g.model, seconds(5));
  EXPECT_LT(g.policy.limit(), 64U);
}

TEST(AutoLimitShared, ThatShrinkingDoesNotHelpIsNoNewBaseline) {
  Gateway g;  // latency stays at 40 ms however low the limit is
  static_cast<void>(g.exchange(seconds(30), truth(g.model.now)));
  run_for(g.policy, g.model, seconds(5), [](const LimitDecision& d) {
    EXPECT_EQ(d.baseline, milliseconds(10));
    EXPECT_NE(d.reason, LimitReason::kProbeEnded);
  });
  EXPECT_TRUE(g.hear_again().wants_probe) << "but a reason to look";
}

TEST(AutoLimitShared, AnUnusedLimitLearnsNothingWhileOthersAreFull) {
  for (const std::uint32_t full : {0U, 10U}) {
    Gateway g;
    g.model.demand = 400;  // 16 of 64 places
    run_for(g.policy, g.model, seconds(2));
    static_cast<void>(g.exchange(seconds(30), truth(g.model.now)));
    g.news.full = full;
    g.news.shared->p10 = g.news.shared->p50 = g.news.shared->p90 = g.news.shared->avg =
        milliseconds(38);
    static_cast<void>(g.hear_again());
    LimitDecision last;
    run_for(g.policy, g.model, seconds(8), [&last](const LimitDecision& d) { last = d; });
    EXPECT_EQ(last.baseline > milliseconds(38), full == 0) << full;
  }
}

TEST(AutoLimitShared, TheSlackIsDividedAmongThoseThatAreFull) {
  const auto settled = [](std::uint32_t full) {
    Gateway g;
    g.model = {.workers = 100};  // of these alone
    for (int i = 0; i < 20; ++i) {
      g.news = {.at = g.model.now,
                .shared = truth(time_from_ns(1)),
                .probe_at = g.model.now + seconds(30),
                .full = full};
      static_cast<void>(g.policy.exchange(g.news));
      run_for(g.policy, g.model, seconds(1));
    }
    return g.policy.limit();
  };
  EXPECT_LT(settled(10), settled(1));
  EXPECT_GE(settled(10), 100U);
}

TEST(AutoLimitShared, LimitsApproachTheirMean) {
  for (const double mean : {90.0, 130.0}) {
    Gateway g;
    g.model = {.workers = 100};
    std::uint32_t without = 0;
    for (int i = 0; i < 20; ++i) {
      g.news = {.at = g.model.now,
                .shared = truth(time_from_ns(1)),
                .probe_at = g.model.now + seconds(30),
                .full = 1,
                .limit_mean = i < 10 ? 0 : mean};
      static_cast<void>(g.policy.exchange(g.news));
      if (i == 10) without = g.policy.limit();
      run_for(g.policy, g.model, seconds(1));
    }
    EXPECT_EQ(g.policy.limit() > without, mean > without) << mean;
  }
}

TEST(AutoLimitShared, WithoutNewsItIsAloneAgain) {
  Gateway g;
  static_cast<void>(g.exchange(seconds(3600), truth(g.model.now)));
  bool probed = false;
  run_for(g.policy, g.model, seconds(90), [&probed](const LimitDecision& d) {
    probed = probed || d.reason == LimitReason::kProbe || d.reason == LimitReason::kProbeEnded;
  });
  EXPECT_TRUE(probed);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
