#include "policy/hedge_decision.h"

#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

const std::vector<HedgeTarget> kOne(1);

NoHedge reason_for(const HedgeProgress& call, const HedgeConditions& conditions = {},
                   const std::vector<HedgeTarget>& targets = kOne) {
  return may_hedge(call, conditions, targets).reason;
}

// Write safety as a fact of the types: the only way to a SafeRead is of().
static_assert(!std::is_default_constructible_v<SafeRead>);
static_assert(!std::is_constructible_v<SafeRead, SafeRead::Facts>);
static_assert(!std::is_aggregate_v<SafeRead>);

TEST(SafeRead, IsMadeOfReadsOnly) {
  using F = SafeRead::Facts;
  EXPECT_TRUE(SafeRead::of(F{.safe_method = true}));
  EXPECT_TRUE(SafeRead::of(F{.marked_idempotent = true}));
  EXPECT_TRUE(SafeRead::of(F{.marked_idempotent = true, .has_body = true, .body_kept = true}));
  EXPECT_EQ(SafeRead::of(F{}).error(), NoHedge::kUnsafe);
  EXPECT_EQ(SafeRead::of(F{.has_body = true, .body_kept = true}).error(), NoHedge::kUnsafe);
  EXPECT_EQ(SafeRead::of(F{.safe_method = true, .has_body = true, .body_kept = true}).error(),
            NoHedge::kBody);
  EXPECT_EQ(SafeRead::of(F{.marked_idempotent = true, .has_body = true}).error(), NoHedge::kBody);
  EXPECT_EQ(SafeRead::of(F{.safe_method = true, .upgrade = true}).error(), NoHedge::kUpgrade);
}

TEST(MayHedge, EachConditionHasItsReasonAndTheFirstOneIsTold) {
  EXPECT_EQ(reason_for({}), NoHedge::kNone);
  EXPECT_EQ(reason_for({}, {.enabled = false, .overloaded = true}), NoHedge::kDisabled);
  EXPECT_EQ(reason_for({.attempts = 3}), NoHedge::kAttemptsUsed);
  EXPECT_EQ(reason_for({.caller_attempt = 2}), NoHedge::kCallerRetries);
  EXPECT_EQ(reason_for({}, {.overloaded = true, .cohort_slow = true}), NoHedge::kCohortSlow);
  EXPECT_EQ(reason_for({}, {.overloaded = true}), NoHedge::kOverload);
  EXPECT_EQ(reason_for({.deadline_left = Duration(0)}), NoHedge::kDeadline);
  EXPECT_EQ(reason_for({}, {}, {}), NoHedge::kNoTarget);  // edge case 3: one replica
}

TEST(MayHedge, EachTargetHasItsReason) {
  struct Case {
    HedgeTarget target;
    NoHedge reason;
  };
  const Case cases[] = {
      {{.openness = Openness::kTrial}, NoHedge::kTargetOut},
      {{.openness = Openness::kPanicOnly}, NoHedge::kTargetOut},   // ejected
      {{.openness = Openness::kLastResort}, NoHedge::kTargetOut},  // hung
      {{.openness = Openness::kClosed}, NoHedge::kTargetOut},      // draining: edge case 9
      {{.queue = OutgoingState::kThrottled}, NoHedge::kTargetQueue},
      {{.own_zone = false}, NoHedge::kOtherZone},
      {{.pushed_back = true}, NoHedge::kPushback},
      {{.connection_ready = false}, NoHedge::kNoConnection},
      {{.in_flight = 4, .in_flight_max = 4}, NoHedge::kTargetFull},
      {{.median = milliseconds(20)}, NoHedge::kDeadline},
      {{.in_flight = 3, .in_flight_max = 4, .median = milliseconds(19)}, NoHedge::kNone},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(reason_for({.deadline_left = milliseconds(20)}, {}, {c.target}), c.reason)
        << name_of(c.reason);
  }
}

TEST(MayHedge, TakesTheFirstTargetThatMayBeUsed) {
  const std::vector<HedgeTarget> targets = {
      {.own_zone = false}, {.openness = Openness::kClosed}, {.in_flight = 9}, {}};
  const HedgeChoice choice = may_hedge({}, {}, targets);
  EXPECT_EQ(choice.reason, NoHedge::kNone);
  EXPECT_EQ(choice.target, 2U);
}

TEST(MayHedge, TellsWhatIsWrongWithTheBestTargetIfAllAre) {  // edge case 4: all unhealthy
  EXPECT_EQ(reason_for({}, {}, {{.pushed_back = true}, {.openness = Openness::kClosed}}),
            NoHedge::kPushback);
}

HedgeTarget random_target(Rng& rng) {
  return {.openness = static_cast<Openness>(rng.below(6)),
          .queue = static_cast<OutgoingState>(rng.below(kOutgoingStateCount)),
          .own_zone = rng.chance(0.7),
          .pushed_back = rng.chance(0.2),
          .connection_ready = rng.chance(0.8),
          .in_flight = static_cast<std::uint32_t>(rng.below(4)),
          .in_flight_max = static_cast<std::uint32_t>(rng.below(4)),
          .median = milliseconds(rng.below(30))};
}

TEST(MayHedge, NeverPicksAForbiddenTargetUnderAnyState) {
  Rng rng(5);
  int hedged = 0;
  for (int run = 0; run < 50'000; ++run) {
    std::vector<HedgeTarget> targets(rng.below(4));
    for (HedgeTarget& target : targets) target = random_target(rng);
    HedgeProgress call{.attempts = static_cast<std::uint32_t>(1 + rng.below(4))};
    if (rng.chance(0.5)) call.deadline_left = milliseconds(rng.between(-5, 40));
    const HedgeConditions conditions{
        .enabled = rng.chance(0.9), .overloaded = rng.chance(0.2), .cohort_slow = rng.chance(0.2)};
    const HedgeChoice choice = may_hedge(call, conditions, targets);
    if (choice.reason != NoHedge::kNone) continue;
    ++hedged;
    const HedgeTarget& target = targets.at(choice.target);
    ASSERT_TRUE(conditions.enabled && !conditions.overloaded && !conditions.cohort_slow);
    ASSERT_LT(call.attempts, call.attempts_max);
    ASSERT_EQ(target.openness, Openness::kOpen);
    ASSERT_EQ(target.queue, OutgoingState::kHealthy);
    ASSERT_TRUE(target.own_zone && !target.pushed_back && target.connection_ready);
    ASSERT_GT(call.deadline_left.value_or(milliseconds(100)), target.median);
  }
  EXPECT_GT(hedged, 100);
}

TEST(PushbackPeriod, IsWhatTheEndpointAsksForWithinBounds) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  EXPECT_EQ(pushback_period(std::nullopt), seconds(1));
  EXPECT_EQ(pushback_period(milliseconds(300)), milliseconds(300));
  EXPECT_EQ(pushback_period(seconds(0)), seconds(0));
  EXPECT_EQ(pushback_period(seconds(-1)), seconds(0));
  EXPECT_EQ(pushback_period(std::chrono::hours(1)), seconds(5));
}

TEST(AnswerKind, SortsStatuses) {
  for (const std::uint32_t good : {200U, 204U, 301U, 304U, 400U, 403U, 500U, 501U}) {
    EXPECT_EQ(answer_kind(good), AnswerKind::kGood) << good;
  }
  for (const std::uint32_t absent : {404U, 410U}) {
    EXPECT_EQ(answer_kind(absent), AnswerKind::kAbsent) << absent;
  }
  for (const std::uint32_t later : {429U, 502U, 503U, 504U}) {
    EXPECT_EQ(answer_kind(later), AnswerKind::kTryLater) << later;
  }
}

TEST(AnswerKind, SortsStatusesOfGrpc) {
  EXPECT_EQ(grpc_answer_kind(0, false), AnswerKind::kGood);
  EXPECT_EQ(grpc_answer_kind(5, true), AnswerKind::kAbsent);
  for (const bool waits : {false, true}) {
    EXPECT_EQ(grpc_answer_kind(14, waits), AnswerKind::kTryLater);
    EXPECT_EQ(grpc_answer_kind(8, waits), waits ? AnswerKind::kTryLater : AnswerKind::kError);
  }
  for (const std::uint32_t error :
       {1U, 2U, 3U, 4U, 6U, 7U, 9U, 10U, 11U, 12U, 13U, 15U, 16U, 99U}) {
    EXPECT_EQ(grpc_answer_kind(error, true), AnswerKind::kError) << error;
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
