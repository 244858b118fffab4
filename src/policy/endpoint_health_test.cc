#include "policy/endpoint_health.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using S = EndpointState;
using E = HealthEvent;
using R = HealthReason;

struct EndpointHealthTest : ::testing::Test {
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  EndpointHealthRules rules;
  Rng rng{1};
  EndpointHealth health{now};
  std::optional<HealthChange> change;

  void on(HealthEvent event, int times = 1) {
    for (int i = 0; i < times; ++i) change = health.apply(event, now, rules, rng);
  }
  void pass(Duration time) {
    now += time;
    on(E::kTick);
  }
  /// How long the state lasts from now on, if nothing happens.
  Duration left() const { return health.until().value() - now; }
  double ratio() const { return health.return_ratio(now, rules); }
  void expect(EndpointState state, HealthReason reason) const {
    EXPECT_EQ(name_of(health.state()), name_of(state));
    EXPECT_EQ(name_of(health.reason()), name_of(reason));
  }
};

TEST_F(EndpointHealthTest, PausesDoubleFromFailureToFailure) {
  for (const int ms : {100, 200, 400, 800, 1600, 3200, 6400, 6400}) {
    on(E::kConnectFailed);
    expect(S::kEjected, R::kConnectFailed);
    EXPECT_EQ(health.openness(), Openness::kClosed);
    EXPECT_EQ(left(), milliseconds(ms));
    pass(left() - Duration(1));
    EXPECT_EQ(health.state(), S::kEjected);
    pass(Duration(1));
    expect(S::kReturning, R::kPauseOver);
  }
}

TEST_F(EndpointHealthTest, FailuresDuringAnEjectionCountOnce) {
  on(E::kConnectFailed, 64);
  on(E::kBadAnswer, 64);
  EXPECT_EQ(left(), milliseconds(100));
  pass(milliseconds(100));
  on(E::kConnectFailed);
  EXPECT_EQ(left(), milliseconds(200));
}

TEST_F(EndpointHealthTest, OnlyBadAnswersInARowEject) {
  on(E::kBadAnswer, 2);
  on(E::kAnswered);
  on(E::kBadAnswer, 2);
  EXPECT_EQ(health.state(), S::kAvailable);
  on(E::kBadAnswer);
  expect(S::kEjected, R::kBadAnswers);
  EXPECT_EQ(health.openness(), Openness::kPanicOnly);
  pass(left());
  on(E::kBadAnswer);  // on trial, one is enough
  expect(S::kEjected, R::kBadAnswers);
}

TEST_F(EndpointHealthTest, AnAnswerEndsAnEjectionAndForgetsTheFailures) {
  on(E::kConnectFailed);
  pass(milliseconds(100));
  on(E::kConnectFailed);
  on(E::kAnswered);
  EXPECT_EQ(health.openness(), Openness::kOpen);
  EXPECT_TRUE(health.quiet());
  on(E::kConnectFailed);
  EXPECT_EQ(left(), milliseconds(100));
}

TEST_F(EndpointHealthTest, GoodAnswersInBetweenDoNotShortenAnEjectionForBadOnes) {
  for (const int ms : {100, 200, 400, 800}) {
    on(E::kBadAnswer, 3);
    on(E::kAnswered);
    expect(S::kEjected, R::kBadAnswers);
    EXPECT_EQ(left(), milliseconds(ms));
    pass(left());
    on(E::kAnswered);
    EXPECT_EQ(health.openness(), Openness::kOpen);
  }
  pass(seconds(10));
  on(E::kBadAnswer, 3);
  EXPECT_EQ(left(), milliseconds(100));
}

TEST_F(EndpointHealthTest, AnEndpointThatIsWantedIsTriedAgainSoon) {
  for (int i = 0; i < 6; ++i) {
    on(E::kConnectFailed);
    pass(left());
  }
  on(E::kConnectFailed);
  EXPECT_EQ(left(), milliseconds(6400));
  pass(milliseconds(99));
  on(E::kWanted);
  EXPECT_EQ(health.openness(), Openness::kClosed);
  pass(milliseconds(1));
  on(E::kWanted);
  EXPECT_EQ(health.openness(), Openness::kTrial);
  on(E::kTrialStarted);
  on(E::kWanted);
  EXPECT_EQ(health.openness(), Openness::kClosed);
}

TEST_F(EndpointHealthTest, AConnectThatFailsClosesItEvenIfItIsEjectedForBadAnswers) {
  on(E::kBadAnswer, 3);
  on(E::kConnectFailed);
  expect(S::kEjected, R::kConnectFailed);
  EXPECT_EQ(change->from, S::kEjected);
  EXPECT_EQ(health.openness(), Openness::kClosed);
  EXPECT_EQ(left(), milliseconds(100));
}

TEST_F(EndpointHealthTest, ATrialIsOneAttemptAtATime) {
  on(E::kBadAnswer, 3);
  pass(left());
  EXPECT_EQ(health.openness(), Openness::kTrial);
  on(E::kTrialStarted);
  EXPECT_EQ(health.openness(), Openness::kTrialBusy);
  pass(rules.trial_max);  // the attempt was abandoned
  EXPECT_EQ(health.openness(), Openness::kTrial);
  on(E::kTrialStarted);
  on(E::kConnected);  // does not prove that answers are good
  EXPECT_EQ(health.openness(), Openness::kTrialBusy);
  on(E::kAnswered);
  EXPECT_EQ(health.openness(), Openness::kOpen);
}

TEST_F(EndpointHealthTest, AConnectTrialIsClosedToOthersAndEndsWithAConnect) {
  on(E::kConnectFailed);
  pass(left());
  EXPECT_EQ(health.openness(), Openness::kTrial);
  on(E::kTrialStarted);
  EXPECT_EQ(health.openness(), Openness::kClosed);
  on(E::kConnected);
  EXPECT_EQ(health.openness(), Openness::kOpen);
}

TEST_F(EndpointHealthTest, TheRampIsAsLongAsTheAbsenceAndStartsAfterTheTrial) {
  on(E::kCheckFailed, 3);
  pass(seconds(4));
  on(E::kCheckPassed, 2);
  expect(S::kReturning, R::kChecksPassed);
  EXPECT_DOUBLE_EQ(ratio(), 0.1);
  EXPECT_EQ(left(), seconds(4));
  pass(seconds(2));
  EXPECT_DOUBLE_EQ(ratio(), 0.5);
  pass(seconds(2));
  expect(S::kAvailable, R::kRampOver);
  EXPECT_DOUBLE_EQ(ratio(), 1);

  on(E::kConnectFailed);
  pass(milliseconds(100));
  pass(seconds(30));  // no request came
  EXPECT_DOUBLE_EQ(ratio(), 0.1);
  on(E::kConnected);
  EXPECT_GT(left(), milliseconds(99));
}

TEST_F(EndpointHealthTest, TheRampTakesTenSecondsAtMost) {
  on(E::kOperatorDrain);
  pass(std::chrono::hours(1));
  on(E::kOperatorUndrain);
  expect(S::kReturning, R::kDrainOver);
  EXPECT_EQ(left(), seconds(10));
  const EndpointHealth joined = EndpointHealth::joined(now, rules);
  EXPECT_EQ(joined.state(), S::kReturning);
  EXPECT_EQ(joined.until(), now + seconds(10));
}

TEST_F(EndpointHealthTest, SuspicionEndsWithAnyByteWithoutARamp) {
  on(E::kSuspected);
  expect(S::kSuspect, R::kSilent);
  EXPECT_EQ(health.openness(), Openness::kLastResort);
  EXPECT_EQ(health.until(), std::nullopt);
  pass(seconds(1));
  on(E::kHeard);
  expect(S::kAvailable, R::kHeard);
  EXPECT_DOUBLE_EQ(ratio(), 1);
}

TEST_F(EndpointHealthTest, AHangEndsWithAByteAndARamp) {
  on(E::kSuspected);
  on(E::kHung);
  expect(S::kHung, R::kSilent);
  now += milliseconds(900);
  on(E::kHung);  // a probe is unanswered: the pause is extended
  now += milliseconds(900);
  on(E::kHung);
  EXPECT_EQ(health.state(), S::kHung);
  EXPECT_EQ(left(), seconds(1));
  on(E::kHeard);
  expect(S::kReturning, R::kHeard);
  EXPECT_EQ(health.openness(), Openness::kOpen);
  EXPECT_EQ(left(), milliseconds(1800));
}

TEST_F(EndpointHealthTest, AHangWithoutProbesGetsATrialLaterAndLater) {
  for (const int s : {1, 2, 4, 8, 8}) {
    on(E::kHung);
    EXPECT_EQ(left(), seconds(s));
    pass(left());
    EXPECT_EQ(health.openness(), Openness::kTrial);
  }
}

TEST_F(EndpointHealthTest, LatencyEjectionsDoubleAndAreForgotten) {
  Duration nominal = seconds(3);
  for (int k = 0; k < 8; ++k) {
    on(E::kTooSlow);
    expect(S::kEjected, R::kSlow);
    EXPECT_EQ(health.openness(), Openness::kPanicOnly);
    EXPECT_GE(left(), nominal * 8 / 10);
    EXPECT_LE(left(), nominal * 12 / 10);
    pass(left());
    EXPECT_EQ(health.openness(), Openness::kOpen);
    nominal = std::min<Duration>(nominal * 2, seconds(60));
  }
  pass(seconds(60));
  on(E::kTooSlow);
  EXPECT_LE(left(), milliseconds(3600));
}

TEST_F(EndpointHealthTest, AnAnswerDoesNotEndALatencyEjection) {
  on(E::kTooSlow);
  on(E::kAnswered);
  on(E::kHeard);
  expect(S::kEjected, R::kSlow);
  on(E::kTooSlow);  // is not counted twice
  EXPECT_LE(left(), milliseconds(3600));
}

TEST_F(EndpointHealthTest, ChecksNeedTheirThresholds) {
  on(E::kCheckFailed, 2);
  on(E::kCheckPassed);
  on(E::kCheckFailed, 2);
  EXPECT_EQ(health.state(), S::kAvailable);
  on(E::kCheckFailed);
  expect(S::kEjected, R::kChecksFailed);
  EXPECT_EQ(health.until(), std::nullopt);
  on(E::kAnswered);  // a check says more than one answer
  EXPECT_EQ(health.state(), S::kEjected);
  on(E::kCheckPassed);
  on(E::kCheckFailed);
  on(E::kCheckPassed);
  EXPECT_EQ(health.state(), S::kEjected);
  on(E::kCheckPassed);
  EXPECT_EQ(health.openness(), Openness::kOpen);
}

TEST_F(EndpointHealthTest, WhatTheEndpointSaidAboutDrainingIsForgotten) {
  on(E::kEndpointDrain);
  expect(S::kDraining, R::kEndpoint);
  EXPECT_EQ(health.openness(), Openness::kClosed);
  pass(seconds(9));
  on(E::kEndpointDrain);
  pass(seconds(9));
  EXPECT_EQ(health.state(), S::kDraining);
  pass(seconds(1));
  expect(S::kReturning, R::kDrainOver);
}

TEST_F(EndpointHealthTest, TheOperatorsDrainStaysWhateverHappens) {
  on(E::kOperatorDrain);
  for (const E event : {E::kAnswered, E::kHeard, E::kCheckPassed, E::kEndpointUndrain,
                        E::kConnectFailed, E::kHung, E::kTick}) {
    on(event);
    now += seconds(20);
    expect(S::kDraining, R::kOperator);
  }
}

TEST_F(EndpointHealthTest, TheWorstConditionIsTheStateAndTheOthersRemain) {
  on(E::kTooSlow);
  on(E::kBadAnswer, 3);
  expect(S::kEjected, R::kBadAnswers);
  on(E::kHung);
  expect(S::kHung, R::kSilent);
  on(E::kHeard);
  expect(S::kEjected, R::kBadAnswers);
  pass(milliseconds(100));
  expect(S::kEjected, R::kSlow);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->from, change->to);
  pass(left());
  EXPECT_EQ(health.state(), S::kReturning);
}

TEST_F(EndpointHealthTest, EachChangeIsReportedOnce) {
  const TimePoint begin = now;
  on(E::kConnectFailed);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->from, S::kAvailable);
  EXPECT_EQ(change->to, S::kEjected);
  EXPECT_EQ(change->reason, R::kConnectFailed);
  EXPECT_EQ(change->at, begin);
  on(E::kConnectFailed);
  EXPECT_FALSE(change.has_value());
  pass(milliseconds(50));
  EXPECT_FALSE(change.has_value());
  EXPECT_EQ(health.since(), begin);
  pass(milliseconds(50));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, S::kReturning);
}

/// Random events. After each the invariants hold; when all is quiet, it becomes available again.
TEST_F(EndpointHealthTest, EveryScheduleEndsAvailable) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    rng = Rng(seed);
    health = EndpointHealth(now);
    EndpointState before = health.state();
    for (int i = 0; i < 300; ++i) {
      now += milliseconds(rng.between(0, 700));
      const auto event = static_cast<HealthEvent>(rng.below(kHealthEventCount));
      on(event);
      if (change) {
        EXPECT_EQ(change->from, before);
      }
      EXPECT_EQ(health.state(), change ? change->to : before);
      before = health.state();
      EXPECT_GE(ratio(), 0.1);
      EXPECT_LE(ratio(), 1);
      const bool open = before == S::kAvailable || before == S::kReturning;
      const bool usable = health.openness() == Openness::kOpen ||
                          health.openness() == Openness::kTrial ||
                          health.openness() == Openness::kTrialBusy;
      if (usable) {
        EXPECT_TRUE(open) << name_of(before);
      }
      if (health.until()) {
        EXPECT_GT(*health.until(), now);
      }
      if (health.until()) {
        EXPECT_LE(*health.until(), now + seconds(72));
      }
      if (health.quiet()) {
        EndpointHealth copy = health;
        EXPECT_FALSE(copy.apply(E::kHeard, now, rules, rng).has_value());
        EXPECT_FALSE(copy.apply(E::kAnswered, now, rules, rng).has_value());
        EXPECT_FALSE(copy.apply(E::kConnected, now, rules, rng).has_value());
      }
    }
    on(E::kOperatorUndrain);
    on(E::kEndpointUndrain);
    on(E::kCheckPassed, 2);
    on(E::kAnswered);
    pass(seconds(72));
    on(E::kAnswered);  // ends a trial
    pass(seconds(10));
    EXPECT_EQ(health.state(), S::kAvailable) << "seed " << seed;
  }
}

TEST(EndpointHealth, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kHealthReasonCount; ++i) {
    names.insert(name_of(static_cast<HealthReason>(i)));
  }
  EXPECT_EQ(names.size(), kHealthReasonCount);
  EXPECT_EQ(names.count(""), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
