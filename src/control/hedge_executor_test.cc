// The tests named Seed… and EdgeCase… are those that the first description of hedging asks for;
// Bug… are mistakes that other libraries made.
#include "control/hedge_executor.h"

#include <array>
#include <type_traits>

#include <gtest/gtest.h>

#include "base/allocation_probe.h"
#include "hedge_testing.h"

namespace weir::inline v0::inline control {
namespace {

using policy::NoHedge;
using std::chrono::milliseconds;
using Does = FakeReplica::Does;
using StepKind = HedgeStep::Kind;

/// Two replicas: a slow primary (0) and a fast one (1).
struct SlowAndFast : HedgeRun {
  explicit SlowAndFast(Duration primary = milliseconds(200)) : HedgeRun(2) {
    replica(0).latency = primary;
    replica(1).latency = milliseconds(2);
  }
};

// Nothing but a SafeRead begins a hedged call.
static_assert(
    std::is_invocable_v<decltype(&HedgeExecutor::begin), HedgeExecutor&, const policy::SafeRead&,
                        const HedgeExecutor::Call&, RedundancyBudget&>);
static_assert(!std::is_invocable_v<decltype(&HedgeExecutor::begin), HedgeExecutor&,
                                   const policy::SafeRead::Facts&, const HedgeExecutor::Call&,
                                   RedundancyBudget&>);

TEST(HedgeExecutor, SeedDisabledGoesDirect) {
  SlowAndFast run;
  run.conditions.enabled = false;
  const auto result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.hedges, 0);
  EXPECT_EQ(result.no_hedge, NoHedge::kDisabled);
}

TEST(HedgeExecutor, SeedNoReplicasGoesDirect) {
  SlowAndFast run;
  const auto result = run.fetch({0});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.took, milliseconds(200));
  EXPECT_EQ(result.no_hedge, NoHedge::kNoTarget);
}

TEST(HedgeExecutor, SeedHedgeWinsWhenPrimarySlow) {
  SlowAndFast run;
  const auto result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.replica, 1U);
  EXPECT_EQ(result.took, milliseconds(7));  // 5 ms delay + 2 ms
  EXPECT_EQ(run.replica(0).cancelled, 1);
  EXPECT_EQ(run.shared.balance_millitokens(), 99'000U);
}

TEST(HedgeExecutor, SeedPrimaryWinsBeforeDelay) {
  SlowAndFast run(milliseconds(1));
  const auto result = run.fetch({0, 1});
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.took, milliseconds(1));
  EXPECT_EQ(run.replica(1).asked, 0);
  EXPECT_EQ(result.no_hedge, NoHedge::kNotNeeded);
}

TEST(HedgeExecutor, SeedSkippedUnderBackpressure) {
  SlowAndFast run(milliseconds(100));
  run.conditions.overloaded = true;
  const auto result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.took, milliseconds(100));
  EXPECT_EQ(result.no_hedge, NoHedge::kOverload);
}

TEST(HedgeExecutor, EdgeCase1BothFailThePrimarysErrorIsReported) {
  SlowAndFast run(milliseconds(20));
  run.replica(0).does = run.replica(1).does = Does::kFails;
  for (const Duration hedge_latency : {milliseconds(2), milliseconds(50)}) {
    run.replica(1).latency = hedge_latency;
    const auto result = run.fetch({0, 1}, {.attempts_max = 2});
    EXPECT_EQ(result.kind, StepKind::kFail);
    EXPECT_EQ(result.replica, 0U);
    EXPECT_EQ(result.hedges, 1);
  }
}

TEST(HedgeExecutor, EdgeCase1AlsoIfTheHedgesErrorIsAnAnswer) {
  SlowAndFast run(milliseconds(20));
  run.replica(0).does = Does::kFails;
  run.replica(1).does = Does::kTryLater;
  const auto result = run.fetch({0, 1}, {.attempts_max = 2});
  EXPECT_EQ(result.kind, StepKind::kFail);
  EXPECT_EQ(run.replica(1).cancelled, 1);
}

TEST(HedgeExecutor, EdgeCase2TheLoserIsCancelledWhoeverItIs) {
  SlowAndFast run(milliseconds(6));
  const auto result = run.fetch({0, 1});  // the primary answers 1 ms after the hedge was sent
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(run.replica(1).cancelled, 1);
  EXPECT_EQ(run.replica(0).cancelled, 0);
}

TEST(HedgeExecutor, EdgeCase4AllOthersUnhealthyOnlyThePrimaryIsAsked) {
  HedgeRun run(3);
  run.replica(0).latency = milliseconds(40);
  run.replica(1).target.openness = policy::Openness::kPanicOnly;
  run.replica(2).target.openness = policy::Openness::kLastResort;
  const auto result = run.fetch({0, 1, 2});
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.no_hedge, NoHedge::kTargetOut);
}

TEST(HedgeExecutor, EdgeCase5ThePrimaryIsNotItsOwnHedge) {
  RedundancyBudget shared;
  RedundancyBudget own;
  HedgeExecutor executor(shared);
  const AttemptNumber first = executor.begin(a_read(), {}, own);
  executor.on_written(first, milliseconds(5), kStart);
  const HedgeCandidate itself{.budget = &own};
  const HedgeStep step = executor.on_timer({.now = after_ms(5), .candidates = {&itself, 1}});
  EXPECT_EQ(step.kind, StepKind::kWait);
  EXPECT_NE(step.no_hedge, NoHedge::kNone);
  static_cast<void>(executor.on_cancelled());
}

TEST(HedgeExecutor, EdgeCase6WithoutBudgetThePrimaryIsWaitedFor) {
  SlowAndFast run(milliseconds(80));
  run.shared.set_rules({.deposit_millitokens = 0, .cap_millitokens = 0});
  while (run.shared.try_take()) {
  }
  const auto result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.took, milliseconds(80));
  EXPECT_EQ(result.no_hedge, NoHedge::kBudget);
  EXPECT_EQ(run.replica(0).cancelled, 0);
}

TEST(HedgeExecutor, EdgeCase7TheTimerEndsWithTheAnswer) {
  RedundancyBudget shared;
  RedundancyBudget own;
  HedgeExecutor executor(shared);
  const AttemptNumber first = executor.begin(a_read(), {}, own);
  EXPECT_EQ(executor.timer_at(), TimePoint::max());  // not before the request is written
  executor.on_written(first, milliseconds(5), kStart);
  EXPECT_EQ(executor.timer_at(), after_ms(5));
  EXPECT_EQ(executor.on_answer(first, {}, {.now = after_ms(2)}).kind, StepKind::kComplete);
  EXPECT_EQ(executor.timer_at(), TimePoint::max());
}

TEST(HedgeExecutor, EdgeCase9ADrainingReplicaIsPassedOver) {
  HedgeRun run(3);
  run.replica(0).latency = milliseconds(40);
  run.replica(1).target.openness = policy::Openness::kClosed;
  const auto result = run.fetch({0, 1, 2});
  EXPECT_EQ(result.replica, 2U);
  EXPECT_EQ(run.replica(1).asked, 0);
}

TEST(HedgeExecutor, APrimaryThatFailsFastIsReplacedAtOnce) {
  SlowAndFast run(milliseconds(1));
  run.replica(0).does = Does::kFails;
  const auto result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.took, milliseconds(3));               // not after the delay
  EXPECT_EQ(run.shared.balance_millitokens(), 99'000U);  // from the same budget
}

TEST(HedgeExecutor, AFailedPrimaryDoesNotEndTheHedge) {
  SlowAndFast run(milliseconds(6));
  run.replica(0).does = Does::kFails;
  run.replica(1).latency = milliseconds(30);
  const auto result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.replica, 1U);
  EXPECT_EQ(result.attempts, 2);
}

TEST(HedgeExecutor, SuccessBeatsErrorAndThePrimaryBeatsTheHedgeAtTheSameInstant) {
  SlowAndFast run(milliseconds(7));
  EXPECT_EQ(run.fetch({0, 1}).replica, 0U);
  run.replica(0).does = Does::kFails;
  EXPECT_EQ(run.fetch({0, 1}).replica, 1U);
  run.replica(0).does = Does::kTryLater;
  EXPECT_EQ(run.fetch({0, 1}).replica, 1U);
}

TEST(HedgeExecutor, NotFoundOfAHedgeWaitsForThePrimary) {
  SlowAndFast run(milliseconds(40));
  run.replica(1).does = Does::kLacksIt;  // a replica that lags behind
  auto result = run.fetch({0, 1});
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.took, milliseconds(40));
  EXPECT_EQ(run.replica(1).cancelled, 1);
  run.replica(0).does = Does::kFails;  // then it is the best answer there is
  result = run.fetch({0, 1});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.replica, 1U);
  run.replica(0).does = Does::kLacksIt;  // that of the primary counts
  run.replica(0).latency = milliseconds(1);
  EXPECT_EQ(run.fetch({0, 1}).replica, 0U);
}

TEST(HedgeExecutor, TryLaterOfThePrimaryIsUsedIfNothingBetterComes) {
  SlowAndFast run(milliseconds(6));
  run.replica(0).does = Does::kTryLater;
  run.replica(1).does = Does::kFails;
  run.replica(1).latency = milliseconds(30);
  auto result = run.fetch({0, 1}, {.attempts_max = 2});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.took, milliseconds(35));
  run.replica(0).latency = milliseconds(1);  // before the delay: another one is asked at once
  run.replica(1).does = Does::kAnswers;
  result = run.fetch({0, 1});
  EXPECT_EQ(result.replica, 1U);
  result = run.fetch({0});  // there is no other: the answer is passed on
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.replica, 0U);
}

TEST(HedgeExecutor, AHedgeThatSentNothingCostsNothing) {
  SlowAndFast run(milliseconds(40));
  run.replica(1).does = Does::kFailsUnsent;
  const auto result = run.fetch({0, 1});
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.hedges, 1);
  EXPECT_EQ(run.shared.balance_millitokens(), 100'000U);
}

/// A read whose hedge was sent to a second endpoint, event by event.
struct SentHedge {
  SentHedge() {
    first = executor.begin(a_read(), {.attempts_max = 2}, budgets[0]);
    executor.on_written(first, milliseconds(5), kStart);
    second = executor.on_timer(at(5)).attempt;
  }
  ~SentHedge() { static_cast<void>(executor.on_cancelled()); }
  [[nodiscard]] HedgeMoment at(std::int64_t ms) const {
    return {.now = after_ms(ms), .candidates = others};
  }
  RedundancyBudget shared;
  std::array<RedundancyBudget, 3> budgets;
  std::array<HedgeCandidate, 2> others = {{{.budget = &budgets[1]}, {.budget = &budgets[2]}}};
  HedgeExecutor executor{shared};
  AttemptNumber first = 0;
  AttemptNumber second = 0;
};

constexpr HedgeExecutor::Failure kUnsent{
    .facts = {.failure = policy::AttemptFailure::kConnectFailed, .written = false}};
constexpr HedgeExecutor::Failure kReset{
    .facts = {.failure = policy::AttemptFailure::kStreamReset, .written = true}};

TEST(HedgeExecutor, NoTimerRunsWhileTwoAttemptsAreUnderWay) {
  SentHedge race;
  EXPECT_EQ(race.executor.timer_at(), TimePoint::max());
  race.executor.on_written(race.second, milliseconds(5), after_ms(5));
  EXPECT_EQ(race.executor.timer_at(), TimePoint::max());
}

TEST(HedgeExecutor, AnUnsentHedgeGivesItsTokenAndItsAttemptBackAtOnce) {
  SentHedge race;
  EXPECT_EQ(race.shared.balance_millitokens(), 99'000U);
  EXPECT_EQ(race.executor.on_failed(race.second, kUnsent, race.at(6)).kind, StepKind::kWait);
  EXPECT_EQ(race.shared.balance_millitokens(), 100'000U);
  EXPECT_EQ(race.executor.attempts(), 1U);
  // So the failure of the primary may still be followed by another attempt, of two.
  EXPECT_EQ(race.executor.on_failed(race.first, kReset, race.at(7)).kind, StepKind::kBegin);
}

TEST(HedgeExecutor, AnUnsentRetryHandsItsTokenToTheNextOne) {
  // Otherwise each retry that finds no connection would be followed by one that costs nothing.
  SentHedge race;
  static_cast<void>(race.executor.on_failed(race.second, kUnsent, race.at(6)));
  const HedgeStep retry = race.executor.on_failed(race.first, kReset, race.at(7));
  ASSERT_EQ(retry.kind, StepKind::kBegin);
  HedgeExecutor& executor = race.executor;
  EXPECT_EQ(race.shared.balance_millitokens(), 99'000U);
  static_cast<void>(executor.on_cancelled());
  EXPECT_EQ(race.shared.balance_millitokens(), 100'000U);
  const AttemptNumber again = executor.begin(a_read(), {}, race.budgets[0]);
  executor.on_written(again, milliseconds(5), after_ms(10));
  const HedgeStep paid = executor.on_failed(again, kReset, race.at(11));
  const HedgeStep next = executor.on_failed(paid.attempt, kUnsent, race.at(12));
  ASSERT_EQ(next.kind, StepKind::kBegin);
  EXPECT_EQ(next.again, policy::SendAgainReason::kNotSent);
  executor.on_started(next.attempt);
  EXPECT_EQ(executor.on_answer(next.attempt, {}, race.at(13)).kind, StepKind::kComplete);
  EXPECT_EQ(race.shared.balance_millitokens(), 99'000U);
}

TEST(HedgeExecutor, ALateTimerIsArmedOnceMoreAndThenFires) {
  SlowAndFast run(milliseconds(200));
  run.timer_late = milliseconds(20);
  EXPECT_EQ(run.fetch({0, 1}).took, milliseconds(28));  // 5 + 20 late + 1 + 2
  run.replica(0).latency = milliseconds(25);            // what was late was our own process
  run.timer_late = milliseconds(19);
  const auto result = run.fetch({0, 1});
  EXPECT_EQ(result.replica, 0U);
  EXPECT_EQ(result.hedges, 0);
  run.timer_late = milliseconds(5);
  run.replica(0).latency = milliseconds(200);
  EXPECT_EQ(run.fetch({0, 1}).took, milliseconds(12));
}

TEST(HedgeExecutor, NoAttemptIsSentWhenTheDeadlineHasPassed) {
  SlowAndFast run(milliseconds(40));
  run.replica(1).target.median = milliseconds(10);
  auto result = run.fetch({0, 1}, {.deadline = run.now + milliseconds(14)});
  EXPECT_EQ(result.no_hedge, NoHedge::kDeadline);  // 9 ms are left, it usually takes 10
  run.conditions.enabled = false;
  run.replica(0).does = Does::kFails;  // at the very moment of the deadline
  result = run.fetch({0, 1}, {.deadline = run.now + milliseconds(40)});
  EXPECT_EQ(result.kind, StepKind::kFail);
  EXPECT_EQ(result.attempts, 1);
}

TEST(HedgeExecutor, TheSurvivorOfAFailureMayBeHedgedAgain) {
  HedgeRun run(3);
  run.replica(0).latency = milliseconds(100);
  run.replica(1).latency = milliseconds(1);
  run.replica(1).does = Does::kFails;
  run.replica(2).latency = milliseconds(1);
  const auto result = run.fetch({0, 1, 2});
  EXPECT_EQ(result.replica, 2U);
  EXPECT_EQ(result.hedges, 2);
  EXPECT_EQ(result.took, milliseconds(12));  // 5, failed at 6, 5 later, 1
}

TEST(HedgeExecutor, ASickEndpointUsesUpItsOwnBudgetAndHalfOfTheSharedOne) {
  HedgeRun run(3);
  run.replica(0).latency = milliseconds(100);
  while (run.replica(0).budget.try_take()) {
  }
  while (run.shared.may_lend()) EXPECT_EQ(run.fetch({0, 1}).replica, 1U);
  EXPECT_EQ(run.fetch({0, 1}).no_hedge, NoHedge::kDestinationBudget);
  run.replica(2).latency = milliseconds(100);
  EXPECT_EQ(run.fetch({2, 1}).replica, 1U);
}

TEST(HedgeExecutor, CancellingTheCallCancelsEveryAttempt) {
  RedundancyBudget shared;
  std::array<RedundancyBudget, 2> budgets;
  HedgeExecutor executor(shared);
  const AttemptNumber first = executor.begin(a_read(), {}, budgets[0]);
  executor.on_written(first, milliseconds(5), kStart);
  const HedgeCandidate other{.budget = &budgets[1]};
  const HedgeStep hedge = executor.on_timer({.now = after_ms(5), .candidates = {&other, 1}});
  ASSERT_EQ(hedge.kind, StepKind::kBegin);
  EXPECT_EQ(shared.balance_millitokens(), 99'000U);
  EXPECT_EQ(executor.on_cancelled().losers().size(), 2U);
  EXPECT_EQ(shared.balance_millitokens(), 100'000U);  // the hedge had sent nothing
  EXPECT_EQ(budgets[0].balance_millitokens(), 100'000U);
  EXPECT_TRUE(executor.ended());
}

TEST(HedgeExecutor, AFailureWithoutATargetIsLeftToTheOwnerWithItsToken) {
  RedundancyBudget shared;
  RedundancyBudget budget;
  HedgeExecutor executor(shared);
  const AttemptNumber first = executor.begin(a_read(), {}, budget);
  executor.on_written(first, milliseconds(5), kStart);
  const HedgeExecutor::Failure reset{
      .facts = {.failure = policy::AttemptFailure::kStreamReset, .written = true}};
  const HedgeStep step = executor.on_failed(first, reset, {.now = after_ms(1)});
  EXPECT_EQ(step.kind, StepKind::kBeginLater);
  EXPECT_EQ(step.again, policy::SendAgainReason::kIdempotent);
  EXPECT_EQ(shared.balance_millitokens(), 99'000U);
  const AttemptNumber next = executor.restart(budget);
  EXPECT_GT(next, first);
  executor.on_written(next, milliseconds(5), after_ms(60));
  EXPECT_EQ(executor.on_answer(next, {}, {.now = after_ms(61)}).kind, StepKind::kComplete);
  EXPECT_EQ(shared.balance_millitokens(), 99'000U);
}

TEST(HedgeExecutor, ARaceAllocatesNothing) {
  if (!allocations_are_counted()) GTEST_SKIP() << "operator new belongs to the sanitizer";
  const std::size_t before = allocations_so_far();
  SentHedge race;
  race.executor.on_written(race.second, milliseconds(5), after_ms(5));
  const HedgeExecutor::Answer later{.kind = policy::AnswerKind::kTryLater};
  EXPECT_EQ(race.executor.on_answer(race.first, later, race.at(6)).kind, StepKind::kSetAside);
  EXPECT_EQ(race.executor.on_answer(race.second, {}, race.at(7)).kind, StepKind::kComplete);
  LatencyTracker tracker;
  tracker.record({milliseconds(2), AttemptEnd::kAnswered}, kStart);
  EXPECT_GT(tracker.hedge_delay(kStart).delay, Duration(0));
  EXPECT_EQ(allocations_so_far(), before);
}

// ---- mistakes of others

TEST(HedgeExecutor, BugCallHangsWhenTheThrottleEatsTheHedge) {
  SlowAndFast run(milliseconds(20));
  while (run.shared.try_take()) {
  }
  EXPECT_TRUE(run.fetch({0, 1}).ok());
  run.replica(0).does = Does::kFails;  // no token for a retry either: it must still end
  const auto result = run.fetch({0, 1});
  EXPECT_EQ(result.kind, StepKind::kFail);
  EXPECT_EQ(result.attempts, 1);
}

TEST(HedgeExecutor, BugEventsOfALoserAfterTheEndChangeNothing) {  // commit and cancel race
  RedundancyBudget shared;
  std::array<RedundancyBudget, 3> budgets;
  HedgeExecutor executor(shared);
  const AttemptNumber first = executor.begin(a_read(), {}, budgets[0]);
  executor.on_written(first, milliseconds(5), kStart);
  const std::array<HedgeCandidate, 2> others = {{{.budget = &budgets[1]}, {.budget = &budgets[2]}}};
  const HedgeMoment moment{.now = after_ms(5), .candidates = others};
  const AttemptNumber second = executor.on_timer(moment).attempt;
  executor.on_written(second, milliseconds(5), after_ms(5));
  EXPECT_EQ(executor.on_answer(second, {}, moment).kind, StepKind::kComplete);
  EXPECT_EQ(executor.on_answer(first, {}, moment).kind, StepKind::kWait);
  EXPECT_EQ(executor.on_failed(first, {}, moment).kind, StepKind::kWait);
  EXPECT_EQ(executor.on_timer(moment).kind, StepKind::kWait);
  executor.on_written(first, milliseconds(5), after_ms(6));
  EXPECT_EQ(executor.timer_at(), TimePoint::max());
  // Nor do they touch the next call of the same executor.
  const AttemptNumber next = executor.begin(a_read(), {}, budgets[0]);
  EXPECT_EQ(executor.on_answer(first, {}, moment).kind, StepKind::kWait);
  EXPECT_EQ(executor.on_answer(second, {}, moment).kind, StepKind::kWait);
  EXPECT_EQ(executor.on_answer(next, {}, moment).kind, StepKind::kComplete);
}

TEST(HedgeExecutor, BugAnExhaustedBudgetKillsNoAttemptUnderWay) {
  HedgeRun run(3);
  run.replica(0).latency = milliseconds(50);
  run.replica(1).latency = milliseconds(50);
  while (run.shared.balance_millitokens() >= 2000) static_cast<void>(run.shared.try_take());
  const auto result = run.fetch({0, 1, 2});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(run.replica(0).cancelled, 0);
}

TEST(HedgeExecutor, BugARetryDoesNotCancelTheAttemptBesideIt) {  // retry and hedge together
  HedgeRun run(3);
  run.replica(0).does = Does::kFails;
  run.replica(0).latency = milliseconds(1);
  run.replica(1).latency = milliseconds(20);
  run.replica(2).latency = milliseconds(30);
  const auto result = run.fetch({0, 1, 2});  // retried at 1, hedged at 6, answered at 21
  EXPECT_EQ(result.attempts, 3);
  EXPECT_EQ(result.replica, 1U);
  EXPECT_EQ(result.took, milliseconds(21));
  EXPECT_EQ(run.replica(1).cancelled, 0);
  EXPECT_EQ(run.replica(2).cancelled, 1);
}

TEST(HedgeExecutor, BugALoserIsNotRetriedAfterTheWinnerReturned) {
  HedgeRun run(3);
  run.replica(0).latency = milliseconds(100);
  run.replica(1).latency = milliseconds(2);
  EXPECT_EQ(run.fetch({0, 1, 2}).replica, 1U);
  EXPECT_EQ(run.replica(2).asked, 0);
}

TEST(HedgeExecutor, BugACallIsNotHedgedThatItsCallerSendsAgain) {  // hedges of hedges multiply
  SlowAndFast run(milliseconds(40));
  const auto result = run.fetch({0, 1}, {.caller_attempt = 2});
  EXPECT_EQ(result.hedges, 0);
  EXPECT_EQ(result.no_hedge, NoHedge::kCallerRetries);
}

TEST(HedgeExecutor, ASickReplicaIsHedgedAfterTheDelayOfTheOthers) {
  // Its own delay goes up to 50 ms; that of the cohort stays at 2 ms.
  HedgeRun run(3);
  for (int i = 0; i < 200; ++i) {
    run.replica(0).tracker.record({milliseconds(100), AttemptEnd::kAnswered}, run.now);
    run.replica(1).tracker.record({milliseconds(2), AttemptEnd::kAnswered}, run.now);
    run.replica(2).tracker.record({milliseconds(2), AttemptEnd::kAnswered}, run.now);
  }
  std::array<policy::CohortMember, 3> members;
  for (std::size_t i = 0; i < 3; ++i) {
    const LatencyReading reading = run.replica(i).tracker.reading(run.now);
    members[i] = {reading.delay.delay, reading.median};
  }
  run.cohort = policy::judge_cohort(members, {}, run.config);
  run.replica(0).latency = milliseconds(100);
  run.replica(1).latency = milliseconds(2);
  EXPECT_LT(run.fetch({0, 1, 2}).took, milliseconds(5));
}

}  // namespace
}  // namespace weir::inline v0::inline control
