#include <algorithm>
#include <utility>

#include "attempt_facts.h"
#include "loser_watch.h"
#include "pool_endpoint.h"
#include "upstream/answer_kind.h"
#include "upstream/call.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream.h"

// A read whose attempts may overlap: control::HedgeExecutor decides, this part carries it out.

namespace weir::inline v0::upstream {
namespace {

using control::HedgeStep;
using policy::NoHedge;

/// An attempt that ended before it had a connection.
StreamFailure not_begun(UpstreamFailure failure) noexcept {
  return {
      .failure = failure, .processed = policy::Processed::kNo, .written = false, .reused = false};
}

}  // namespace

// ---- who takes part

Result<policy::SafeRead, NoHedge> Call::safe_read() const noexcept {
  return policy::SafeRead::of(
      {.safe_method = head_.method == http::Method::kGet || head_.method == http::Method::kHead,
       .marked_idempotent = start_.idempotent,
       .has_body = head_.framing != RequestFraming::kNone,
       .body_kept = body_complete_ && body_.is_open() && body_.keeping(),
       .upgrade = head_.upgrade});
}

void Call::enter_race() noexcept {
  const Result<policy::SafeRead, NoHedge> read = safe_read();
  if (!dispatcher_->may_hedge() || !start_.hedge) {
    return note_no_hedge(dispatcher_->hedge().enabled && start_.hedge ? NoHedge::kNoTarget
                                                                      : NoHedge::kDisabled);
  }
  // Its body is not complete yet, or not sent: an answer may come before.
  joins_race_ = head_.framing != RequestFraming::kNone && start_.idempotent && !head_.upgrade;
  if (joins_race_) return;
  if (!read) return note_no_hedge(read.error());
  race_.emplace(dispatcher_->upstream().budget());
}

/// The attempt under way becomes the first one of a race, if its body can be sent again.
void Call::join_race(Attempt& attempt) noexcept {
  joins_race_ = false;
  const Result<policy::SafeRead, NoHedge> read = safe_read();
  if (!read) return note_no_hedge(read.error());
  if (attempts_made_ > 1) return note_no_hedge(NoHedge::kAttemptsUsed);  // it is a retry
  race_.emplace(dispatcher_->upstream().budget());
  const control::AttemptNumber number = race_->begin(*read,
                                                     {.attempts_max = kAttemptsMax,
                                                      .caller_attempt = start_.caller_attempt,
                                                      .deadline = deadline_},
                                                     attempt.endpoint().shared->budget());
  (&attempt == &first_ ? numbers_[0] : numbers_[1]) = number;
  attempt.count_as_read();
}

void Call::leave_race() noexcept {
  if (!racing()) return;
  const auto awaits = [](const Attempt& a) {
    return a.active() && !a.connecting() && !a.receiving();
  };
  Attempt* keep = attempt_;
  if (!awaits(*keep) && awaits(other_than(*keep))) keep = &other_than(*keep);
  static_cast<void>(race_->on_cancelled());
  lose(other_than(*keep));
  attempt_ = keep;
  rearm();
}

void Call::lose(Attempt& attempt, bool beaten) noexcept {
  CallCounters& counters = dispatcher_->upstream().counters(dispatcher_->loop_index());
  const bool sent = attempt.active() && attempt.request_sent();
  if (sent) {
    counters.loser_ns.add(
        static_cast<std::uint64_t>((dispatcher_->now() - attempt.sent_at()).count()));
  }
  std::optional<policy::LoserEnd> how;
  if (beaten && attempt.awaiting() && dispatcher_->losers().wants_next()) {
    PoolEndpoint& endpoint = attempt.endpoint();
    dispatcher_->losers().begin(endpoint, attempt.let_finish());
    how = policy::LoserEnd::kFinish;
  } else {
    how = attempt.lose(beaten);
  }
  if (how) counters.losers[static_cast<std::size_t>(*how)].add();
}

// ---- what the executor is told

HedgeCandidates Call::candidates() noexcept {
  return dispatcher_->candidates({.tried = tried(), .hash = start_.hash, .reads = start_.reads});
}

control::HedgeMoment Call::moment(const HedgeCandidates& candidates) const noexcept {
  const Upstream& upstream = dispatcher_->upstream();
  return {.now = dispatcher_->now(),
          .conditions = {.enabled = dispatcher_->hedge().enabled,
                         .overloaded = upstream.overloaded(),
                         .cohort_slow = upstream.hedge_cohort(start_.reads).slow},
          .candidates = candidates.span()};
}

void Call::on_attempt_started(Attempt& attempt) noexcept {
  if (racing()) race_->on_started(number_of(attempt));
}

void Call::on_attempt_sent(Attempt& attempt) noexcept {
  if (joins_race_ && !committed_) join_race(attempt);
  if (!racing()) return;
  const TimePoint now = dispatcher_->now();
  const policy::HedgeDelay own =
      attempt.endpoint().shared->reads(start_.reads).tracker.hedge_delay(now);
  const policy::HedgeDelay delay = policy::capped_by(
      dispatcher_->upstream().hedge_cohort(start_.reads), own, dispatcher_->hedge());
  race_->on_written(number_of(attempt), delay.delay, now);
  dispatcher_->upstream()
      .counters(dispatcher_->loop_index())
      .hedge_delay.observe(to_seconds(delay.delay));
  rearm();
}

void Call::hedge_due() noexcept {
  HedgeCandidates found = candidates();
  const HedgeStep step = race_->on_timer(moment(found));
  const UpstreamFailure ends = follow(step, found, {});
  if (ends != UpstreamFailure::kNone) return end(ends);
  rearm();
}

/// kNone: the call goes on.
UpstreamFailure Call::failed_in_race(Attempt& attempt, const StreamFailure& failure) noexcept {
  Attempt& other = other_than(attempt);
  if (!other.active() && is_final(failure.failure)) return failure.failure;
  const control::AttemptNumber number = number_of(attempt);
  if (failure.written) race_->on_started(number);
  if (&attempt == attempt_ && other.active()) attempt_ = &other;
  HedgeCandidates found = candidates();
  const HedgeStep step = race_->on_failed(
      number, {.facts = facts_of(failure), .code = static_cast<std::uint8_t>(failure.failure)},
      moment(found));
  const UpstreamFailure ends = follow(step, found, failure);
  if (ends == UpstreamFailure::kNone) rearm();
  return ends;
}

/// nullopt: this attempt answers the call. Otherwise whether the head counts as accepted.
std::optional<bool> Call::answered_in_race(Attempt& attempt, const ResponseHead& head) noexcept {
  // To ask another endpoint would not help a caller that asks too often.
  const bool alone = !other_than(attempt).active();
  const policy::AnswerKind kind =
      alone && is_about_the_caller(head) ? policy::AnswerKind::kGood : answer_kind_of(head);
  HedgeCandidates found;
  if (kind == policy::AnswerKind::kTryLater && alone) found = candidates();
  const HedgeStep step = race_->on_answer(
      number_of(attempt), {.kind = kind, .pushback = pushback_of(head)}, moment(found));
  if (step.kind == HedgeStep::Kind::kSetAside) return false;
  const bool answers =
      step.kind == HedgeStep::Kind::kComplete && step.attempt == number_of(attempt);
  const UpstreamFailure ends = follow(step, found, {});
  if (answers) return std::nullopt;
  if (ends != UpstreamFailure::kNone) {
    end(ends);
  } else if (!racing()) {
    attempt_->resume();  // another answer, which was set aside, is the one
  } else {
    rearm();
  }
  return true;
}

// ---- what it decides

/// Carries a step out. kNone: the call goes on. `failure`: of the attempt that caused it, if one
/// did.
UpstreamFailure Call::follow(HedgeStep step, HedgeCandidates& found,
                             StreamFailure failure) noexcept {
  for (;;) {
    note_step(step);
    for (const control::AttemptNumber loser : step.losers()) {
      lose(attempt_with(loser), step.kind == HedgeStep::Kind::kComplete && step.attempt > loser);
    }
    attempts_made_ = race_->attempts();
    switch (step.kind) {
      case HedgeStep::Kind::kWait:
      case HedgeStep::Kind::kSetAside:
        return UpstreamFailure::kNone;
      case HedgeStep::Kind::kComplete:
        attempt_ = &attempt_with(step.attempt);
        endpoint_ = attempt_->endpoint().shared;
        if (step.hedge) attempt_->endpoint().counters.hedge_wins.add();
        rearm();
        return UpstreamFailure::kNone;
      case HedgeStep::Kind::kFail: {
        const auto first = static_cast<UpstreamFailure>(step.code);
        return first != UpstreamFailure::kNone ? first : failure.failure;
      }
      case HedgeStep::Kind::kBeginLater:
        return begin_later(step, failure);
      case HedgeStep::Kind::kBegin:
        break;
    }
    PoolEndpoint& endpoint = *found.endpoints[step.candidate];
    dispatcher_->note_begun(endpoint);
    const UpstreamFailure why =
        begin_in_race({.endpoint = endpoint, .number = step.attempt, .hedge = step.hedge});
    if (why == UpstreamFailure::kNone) return why;
    if (!step.hedge && is_final(why)) return why;
    failure = not_begun(why);
    found = candidates();
    step = race_->on_failed(step.attempt,
                            {.facts = facts_of(failure), .code = static_cast<std::uint8_t>(why)},
                            moment(found));
  }
}

UpstreamFailure Call::begin_in_race(const Place& place) noexcept {
  Attempt& attempt = place.hedge ? other_than(*attempt_) : *attempt_;
  (&attempt == &first_ ? numbers_[0] : numbers_[1]) = place.number;
  if (!place.hedge) endpoint_ = place.endpoint.shared;
  if (tried_count_ < tried_.size()) tried_[tried_count_++] = place.endpoint.shared.get();
  attempts_made_ = race_->attempts();
  if (!std::exchange(deposited_, true)) place.endpoint.shared->budget().deposit();
  control::RedundancyToken none;  // the executor holds it
  const UpstreamFailure why = attempt.begin(*dispatcher_, place.endpoint,
                                            {.number = attempts_made_,
                                             .access = access_,
                                             .check = false,
                                             .read = true,
                                             .hedge = place.hedge},
                                            none);
  if (!place.hedge) return why;
  if (why != UpstreamFailure::kNone) {
    note_no_hedge(NoHedge::kNoConnection);
    return why;
  }
  late_endpoint_ = attempt_->endpoint().shared;
  hedged_after_ = dispatcher_->now() - attempt_->sent_at();
  dispatcher_->upstream().counters(dispatcher_->loop_index()).hedges.add();
  return why;
}

/// The first attempt, or the next one after all have ended.
UpstreamFailure Call::next_in_race() noexcept {
  const Dispatcher::Chosen chosen =
      dispatcher_->choose({.tried = tried(),
                           .hash = start_.hash,
                           .tried_again = true,
                           .may_try = head_.framing == RequestFraming::kNone});
  if (chosen.endpoint == nullptr) return hold(last_failure_);
  control::RedundancyBudget& budget = chosen.endpoint->shared->budget();
  const control::AttemptNumber number = racing()
                                            ? race_->restart(budget)
                                            : race_->begin(*safe_read(),
                                                           {.attempts_max = kAttemptsMax,
                                                            .caller_attempt = start_.caller_attempt,
                                                            .deadline = deadline_},
                                                           budget);
  const UpstreamFailure why = begin_in_race({.endpoint = *chosen.endpoint, .number = number});
  if (why == UpstreamFailure::kNone || is_final(why)) return why;
  const StreamFailure failure = not_begun(why);
  HedgeCandidates found = candidates();
  return follow(
      race_->on_failed(number, {.facts = facts_of(failure), .code = static_cast<std::uint8_t>(why)},
                       moment(found)),
      found, failure);
}

/// No attempt is under way, and no other endpoint can be asked at once.
UpstreamFailure Call::begin_later(const HedgeStep& step, const StreamFailure& failure) noexcept {
  last_failure_ = failure.failure;
  const bool other = dispatcher_->other_open(tried());
  if (!failure.written && !other && !dispatcher_->upstream().any_open()) {
    return hold(failure.failure);
  }
  if (step.same_endpoint && tried_count_ > 0) --tried_count_;
  // A kept connection that accepted nothing: a new one will do.
  const bool stale = failure.reused && !failure.written;
  const std::optional<Duration> wait =
      wait_before_retry(other || step.same_endpoint || stale, step.wait);
  if (!wait) return failure.failure;
  if (step.again == policy::SendAgainReason::kIdempotent) ++retries_;
  if (*wait == Duration(0)) return next_in_race();
  wake_at_ = dispatcher_->now() + *wait;
  rearm();
  return UpstreamFailure::kNone;
}

// ---- what is counted

void Call::note_no_hedge(NoHedge reason) noexcept {
  if (no_hedge_ != NoHedge::kNone) return;  // the first reason counts
  no_hedge_ = reason;
  dispatcher_->upstream()
      .counters(dispatcher_->loop_index())
      .no_hedge[static_cast<std::size_t>(reason)]
      .add();
}

void Call::note_step(const HedgeStep& step) noexcept {
  CallCounters& counters = dispatcher_->upstream().counters(dispatcher_->loop_index());
  if (step.budget_empty) {
    counters.budget_empty.add();
  } else if (step.again) {
    const bool allowed = *step.again <= policy::SendAgainReason::kIdempotent;
    const bool sent =
        step.kind == HedgeStep::Kind::kBegin || step.kind == HedgeStep::Kind::kBeginLater;
    if (allowed ? sent : step.kind == HedgeStep::Kind::kFail) note_decision(*step.again);
  }
  if (step.no_hedge != NoHedge::kNone) note_no_hedge(step.no_hedge);
  const bool completed = step.kind == HedgeStep::Kind::kComplete;
  if (!completed && step.kind != HedgeStep::Kind::kFail) return;
  if (!hedged()) return note_no_hedge(NoHedge::kNotNeeded);
  (!completed   ? counters.hedges_failed
   : step.hedge ? counters.hedges_won
                : counters.hedges_lost)
      .add();
}

}  // namespace weir::inline v0::upstream
