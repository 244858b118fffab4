#include <algorithm>
#include <utility>

#include "hedged_core.h"
#include "hedged_pending.h"
#include "policy/overload_retry.h"
#include "policy/retry_backoff.h"

// What follows an attempt that has ended: the steps of the executor, and other attempts.

namespace weir::inline v0::grpc {

using control::HedgeStep;
using policy::NoHedge;

/// Carries a step out. `written`: the attempt that caused it may have reached its replica.
void HedgedPending::follow(HedgeStep step, ReplicaCandidates& found, bool written) {
  for (;;) {
    note_step(step);
    for (const control::AttemptNumber loser : step.losers()) {
      const bool beaten = step.kind == HedgeStep::Kind::kComplete && step.attempt > loser;
      if (HedgedAttempt* attempt = attempt_with(loser)) lose(*attempt, beaten, true);
    }
    switch (step.kind) {
      case HedgeStep::Kind::kWait:
      case HedgeStep::Kind::kSetAside:
        return;
      case HedgeStep::Kind::kComplete:
      case HedgeStep::Kind::kFail:
        return finish(step.attempt);
      case HedgeStep::Kind::kBeginLater:
        between_ = true;
        return begin_later(step.wait, written);
      case HedgeStep::Kind::kBegin:
        break;
    }
    ReplicaLink& link = *found.links[step.candidate];
    if (!step.hedge && written) count_retry();
    if (begin_at({.link = link, .number = step.attempt, .hedge = step.hedge})) return;
    ended_.push_back(full_queue(step.attempt, link));
    const HedgedOutcome outcome = ended_.back().outcome;
    found = candidates();
    step = race_->on_failed(step.attempt, {.facts = outcome.failed, .code = 0}, moment(found));
    written = false;
  }
}

/// No replica has seen the attempt.
void HedgedPending::fail_unseen(Ended ended) {
  if (!race_) return ended_alone(std::move(ended));
  const control::AttemptNumber number = ended.number;
  const policy::FailedAttempt facts = ended.outcome.failed;
  ended_.push_back(std::move(ended));
  ReplicaCandidates found = candidates();
  follow(race_->on_failed(number, {.facts = facts, .code = 0}, moment(found)), found, false);
}

/// The end of the only attempt of a call that is no read.
void HedgedPending::ended_alone(Ended ended) {
  const HedgedOutcome outcome = ended.outcome;
  const control::AttemptNumber number = ended.number;
  ReplicaLink& link = *ended.link;
  ended_.push_back(std::move(ended));
  if (outcome.answered) return finish(number);
  const policy::SendAgainDecision decision = policy::may_send_again(
      outcome.failed,
      {.idempotent = start_.kind.kind == MethodKind::kIdempotent, .body_kept = true},
      {.attempts = written_ + (outcome.failed.written ? 0 : 1),
       .caller_attempt = start_.options.attempt + (refused_ ? 1 : 0),
       .deadline_left = deadline_left()},
      {.attempts_max = kAttemptsMax});
  if (decision.verdict == policy::SendAgain::kNo) return finish(number);
  if (decision.verdict == policy::SendAgain::kFromBudget && !take_token(link)) {
    return finish(number);
  }
  begin_later(decision.wait, outcome.failed.written);
}

/// No attempt is under way. The last one that ended says why, if there is no other.
void HedgedPending::begin_later(Duration wait, bool written) {
  if (!written && ++laters_ > kAttemptsMax) return finish(ended_.back().number);
  const std::optional<Duration> pause =
      policy::retry_wait({.retries = retries_ + laters_,
                          .other_available = core_.replicas().other_open(ask()),
                          .pushback = wait,
                          .deadline_left = deadline_left()},
                         {}, core_.rng());
  if (!pause) return finish(ended_.back().number);
  if (written) count_retry();
  if (*pause == Duration(0)) return begin_next();
  retry_at_ = core_.now() + *pause;
}

/// A refusal is all that the call has: another attempt later, if the method and the budget allow
/// it. A pushback is lengthened by up to a tenth, so that those who got the same one do not come
/// back together.
bool HedgedPending::again_after_refusal(const Ended& ended) {
  if (start_.options.attempt > 1) return false;
  const std::optional<Duration> left = deadline_left();
  const policy::OverloadRetry retry =
      policy::retry_overloaded({.idempotent = start_.kind.kind != MethodKind::kOther,
                                .processed = !ended.outcome.not_processed,
                                .attempts = std::max(written_, 1U),
                                .retries = retries_,
                                .pushback = ended.hints.pushback,
                                .deadline_left = left},
                               {.attempts_max = kAttemptsMax}, core_.rng());
  if (!retry.again() || !take_token(*ended.link)) return false;
  refused_ = true;
  count_retry();
  const auto tenth = static_cast<std::uint64_t>(retry.wait.count() / 10);
  const Duration wait =
      retry.wait + Duration(static_cast<std::int64_t>(core_.rng().below(tenth + 1)));
  retry_at_ = core_.now() + (wait < *left ? wait : retry.wait);
  return true;
}

bool HedgedPending::take_token(ReplicaLink& link) {
  if (token_.held()) return true;
  return token_.take({.shared = core_.budget(), .destination = link.budget}) ==
         control::BudgetVerdict::kTaken;
}

// ---- what is counted

void HedgedPending::count_retry() {
  ++retries_;
  ++core_.counts().retries;
}

void HedgedPending::note_no_hedge(NoHedge reason) {
  if (no_hedge_ != NoHedge::kNone || hedged_) return;  // the first reason counts
  no_hedge_ = reason;
  core_.count_no_hedge(reason);
}

void HedgedPending::note_step(const HedgeStep& step) {
  if (step.no_hedge != NoHedge::kNone) note_no_hedge(step.no_hedge);
  const bool completed = step.kind == HedgeStep::Kind::kComplete;
  if (!completed && step.kind != HedgeStep::Kind::kFail) return;
  if (!hedged_) return note_no_hedge(NoHedge::kNotNeeded);
  if (std::exchange(judged_, true)) return;
  HedgedStats& counts = core_.counts();
  ++(!completed ? counts.hedges_failed : step.hedge ? counts.hedges_won : counts.hedges_lost);
}

}  // namespace weir::inline v0::grpc
