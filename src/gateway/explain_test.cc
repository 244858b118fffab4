#include "explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

NumbersInForce idle() {
  NumbersInForce numbers;
  numbers.scope.name = "app";
  numbers.scope.limit = 10;
  return numbers;
}

const ExplainedStep& step_named(const Explanation& explanation, std::string_view check) {
  for (const ExplainedStep& step : explanation.steps) {
    if (step.check == check) return step;
  }
  static const ExplainedStep kMissing;
  ADD_FAILURE() << "no step " << check;
  return kMissing;
}

TEST(Explain, AnIdleGatewayAdmitsAndShowsEveryStep) {
  const Explanation said = explain({}, idle());
  EXPECT_EQ(said.verdict, Verdict::kAdmitted);
  ASSERT_GE(said.steps.size(), 7U);
  for (std::size_t i = 1; i < said.steps.size(); ++i) {
    EXPECT_GE(said.steps[i].number, said.steps[i - 1].number);
  }
}

TEST(Explain, AFullLimitMakesNormalWaitAndLowGo) {
  NumbersInForce full = idle();
  full.scope.in_flight = 10;
  EXPECT_EQ(explain({}, full).verdict, Verdict::kWaits);
  EXPECT_THAT(step_named(explain({}, full), "overload").finding,
              HasSubstr("10 of 9 in flight (0.9 of the limit 10"));
  const Explanation low = explain({.priority = Priority::kLow, .time_left = {}}, full);
  EXPECT_EQ(low.verdict, Verdict::kRefused);
  EXPECT_EQ(low.reason, Reason::kOverload);
  EXPECT_EQ(explain({.priority = Priority::kCritical, .time_left = {}}, full).verdict,
            Verdict::kAdmitted);
  full.scope.waiting = full.config.waiting_max;
  EXPECT_EQ(explain({}, full).verdict, Verdict::kRefused);
}

TEST(Explain, TheSharesDiffer) {
  NumbersInForce busy = idle();
  busy.scope.in_flight = 8;
  EXPECT_EQ(explain({.priority = Priority::kHigh, .time_left = {}}, busy).verdict,
            Verdict::kAdmitted);
  EXPECT_EQ(explain({.priority = Priority::kNormal, .time_left = {}}, busy).verdict,
            Verdict::kAdmitted);
  EXPECT_EQ(explain({.priority = Priority::kLow, .time_left = {}}, busy).verdict,
            Verdict::kRefused);
  EXPECT_EQ(explain({.hedge = true, .time_left = {}}, busy).verdict, Verdict::kRefused);
}

TEST(Explain, TheFirstRefusalDecidesAndTheRestIsShown) {
  NumbersInForce numbers = idle();
  numbers.scope.in_flight = 10;
  numbers.actor.in_flight = numbers.config.inflight_max;
  const Explanation said = explain({.has_actor = true, .time_left = {}}, numbers);
  EXPECT_EQ(said.verdict, Verdict::kRefused);
  EXPECT_EQ(said.reason, Reason::kActorInflight);
  EXPECT_EQ(step_named(said, "overload").refuses, Reason::kOverload);
}

TEST(Explain, EveryStepHasItsReason) {
  NumbersInForce numbers = idle();
  EXPECT_EQ(explain({.time_left = Duration(0)}, numbers).reason, Reason::kDeadline);
  numbers.all.memory_usage = 0.96;
  EXPECT_EQ(explain({}, numbers).reason, Reason::kMemory);
  EXPECT_EQ(explain({.priority = Priority::kHigh, .time_left = {}}, numbers).verdict,
            Verdict::kAdmitted);
  numbers.all.memory_usage = 0;
  EXPECT_EQ(explain({.has_actor = true, .bytes = kActorBytesMax, .time_left = {}}, numbers).reason,
            Reason::kTooLarge);
  numbers.peer.in_flight = numbers.config.per_peer_limit;
  EXPECT_EQ(explain({.has_peer = true, .time_left = {}}, numbers).reason, Reason::kPeerLimit);
  numbers.actor.bytes = numbers.config.bytes_max;
  EXPECT_EQ(explain({.has_actor = true, .bytes = 1, .time_left = {}}, numbers).reason,
            Reason::kActorBytes);
  numbers.all.bytes = numbers.config.total_bytes_max;
  EXPECT_EQ(explain({.bytes = 1, .time_left = {}}, numbers).reason, Reason::kBytes);
  numbers.scope.classes[index_of(Priority::kNormal)].cap = 5;
  numbers.scope.classes[index_of(Priority::kNormal)].in_flight = 5;
  EXPECT_EQ(explain({}, numbers).reason, Reason::kClassLimit);
}

TEST(Explain, ARuleThatOnlyWatchesRefusesNothing) {
  NumbersInForce numbers = idle();
  numbers.scope.in_flight = 10;
  numbers.config.modes.limit = RuleMode::kShadow;
  const Explanation said = explain({.priority = Priority::kLow, .time_left = {}}, numbers);
  EXPECT_EQ(said.verdict, Verdict::kAdmitted);
  EXPECT_EQ(step_named(said, "overload").refuses, Reason::kOverload);
  EXPECT_EQ(step_named(said, "overload").mode, RuleMode::kShadow);
}

TEST(Explain, ARequestDearerThanEveryBoundIsServedAlone) {
  NumbersInForce numbers = idle();
  numbers.scope.classes[index_of(Priority::kNormal)].cap = 5;
  const DescribedRequest dear{.cost = kClassUnitsMax, .time_left = {}};
  EXPECT_EQ(explain(dear, numbers).verdict, Verdict::kAdmitted);
  numbers.scope.in_flight = numbers.all.in_flight = 1;
  numbers.scope.classes[index_of(Priority::kNormal)].in_flight = 1;
  EXPECT_EQ(explain(dear, numbers).reason, Reason::kClassLimit);
}

TEST(Explain, ANewcomerQueuesBehindThoseWhoWait) {
  NumbersInForce numbers = idle();
  numbers.scope.waiting = 1;
  EXPECT_EQ(explain({}, numbers).verdict, Verdict::kWaits);
}

}  // namespace
}  // namespace weir::gateway
