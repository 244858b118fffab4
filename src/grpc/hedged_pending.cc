#include "hedged_pending.h"

#include <algorithm>

#include "weir/base/assert.h"

#include "hedged_core.h"

namespace weir::inline v0::grpc {
namespace {

using control::HedgeStep;
using policy::NoHedge;

/// gRPC rounds deadlines to whole milliseconds.
constexpr Duration kDeadlineSlack = std::chrono::milliseconds(2);

/// A read by the table. Its message is kept for every attempt.
policy::SafeRead table_read() {
  return *policy::SafeRead::of({.safe_method = false,
                                .marked_idempotent = true,
                                .has_body = true,
                                .body_kept = true,
                                .upgrade = false});
}

/// An attempt that no replica has seen.
HedgedOutcome unseen() {
  return outcome_of(::grpc::StatusCode::UNAVAILABLE, false, {});
}

}  // namespace

HedgedPending::HedgedPending(HedgedCore& core, Start start)
    : core_(core), start_(std::move(start)) {
  if (start_.kind.kind == MethodKind::kRead) {
    race_.emplace(core.budget());
  } else {
    note_no_hedge(NoHedge::kUnsafe);
  }
}

TimePoint HedgedPending::due() const noexcept {
  const TimePoint hedge = race_ ? race_->timer_at() : TimePoint::max();
  return std::min({start_.deadline, retry_at_, patience_at_, hedge});
}

// ---- facts

ReplicaLinks::Ask HedgedPending::ask() const {
  return {.tried = tried_,
          .among = start_.options.among,
          .reads = start_.kind.reads,
          .may_try = start_.kind.kind == MethodKind::kRead};
}

ReplicaCandidates HedgedPending::candidates() const {
  return core_.replicas().candidates(ask(), core_.now(), core_.rng());
}

control::HedgeMoment HedgedPending::moment(const ReplicaCandidates& candidates) const {
  return {.now = core_.now(),
          .conditions = {.enabled = core_.config().hedge.enabled && start_.options.hedge,
                         .overloaded = core_.overloaded(),
                         .cohort_slow = core_.replicas().cohort(start_.kind.reads).slow},
          .candidates = candidates.span()};
}

std::optional<Duration> HedgedPending::deadline_left() const {
  return start_.deadline - core_.now();
}

HedgedAttempt* HedgedPending::attempt_with(control::AttemptNumber number) const noexcept {
  const auto found = std::find_if(attempts_.begin(), attempts_.end(), [&](const auto* attempt) {
    return attempt != nullptr && attempt->number == number;
  });
  return found != attempts_.end() ? *found : nullptr;
}

// ---- begin

void HedgedPending::begin() {
  if (start_.deadline <= core_.now()) return out_of_time();
  begin_next();
}

/// The first attempt, or the next one after all have ended.
void HedgedPending::begin_next() {
  const auto [link, all_full] = core_.replicas().choose(ask(), core_.now(), core_.rng());
  if (link == nullptr) return nowhere_to_go(all_full);
  control::AttemptNumber number = 0;
  if (!race_) {
    number = ++numbers_;
  } else if (std::exchange(between_, false)) {
    number = race_->restart(link->budget);
  } else {
    number = race_->begin(table_read(),
                          {.attempts_max = kAttemptsMax - std::min(written_, kAttemptsMax - 1),
                           .caller_attempt = start_.options.attempt + (refused_ ? 1 : 0),
                           .deadline = start_.deadline},
                          link->budget);
  }
  if (!begin_at({.link = *link, .number = number})) fail_unseen(full_queue(number, *link));
}

void HedgedPending::nowhere_to_go(bool all_full) {
  const ::grpc::Status full(::grpc::StatusCode::RESOURCE_EXHAUSTED,
                            "weir: queue_full: the queues to all replicas are full");
  const ::grpc::Status none(::grpc::StatusCode::UNAVAILABLE,
                            "weir: no_replica: none is connected, or all are draining or ejected");
  end(HedgedEnd::kFailed, {.status = all_full ? full : none});
}

bool HedgedPending::begin_at(const Place& place) {
  if (!std::exchange(deposited_, true)) {
    core_.budget().deposit();
    place.link.budget.deposit();
  }
  if (std::find(tried_.begin(), tried_.end(), &place.link) == tried_.end()) {
    tried_.push_back(&place.link);
  }
  if (place.link.openness() == policy::Openness::kTrial) {
    place.link.note(policy::HealthEvent::kTrialStarted, core_.now(), core_.rng());
  }
  HedgedAttempt* attempt = core_.begin(*this, place.link, place.number, place.hedge);
  if (attempt == nullptr) return false;
  const auto place_of = std::find(attempts_.begin(), attempts_.end(), nullptr);
  WEIR_ASSERT(place_of != attempts_.end());
  *place_of = attempt;
  if (place.hedge) {
    hedged_ = true;
    ++core_.counts().hedges;
  } else {
    patience_at_ = core_.now() + patience(place.link);
  }
  return true;
}

HedgedPending::Ended HedgedPending::full_queue(control::AttemptNumber number, ReplicaLink& link) {
  return {.number = number,
          .outcome = unseen(),
          .hints = {},
          .link = &link,
          .answer = {
              .status = {::grpc::StatusCode::RESOURCE_EXHAUSTED,
                         "weir: queue_full: queue_per_replica attempts wait for " + link.target}}};
}

// ---- events

void HedgedPending::on_headers(HedgedAttempt& attempt) {
  ++written_;
  ++attempt.link->sent;
  ++core_.counts().attempts;
  token_.spent();
  if (!attempt.hedge) patience_at_ = TimePoint::max();
  attempt.write(start_.request, core_.now());
  if (!race_) return;
  race_->on_written(attempt.number,
                    core_.replicas().hedge_delay(*attempt.link, start_.kind.reads, core_.now()),
                    core_.now());
}

void HedgedPending::on_resolved(HedgedAttempt& attempt) {
  if (attempt.status.ok() && !attempt.has_message) {
    attempt.status = {::grpc::StatusCode::INTERNAL, "the replica sent a status and no message"};
  }
  const ::grpc::StatusCode code = attempt.status.error_code();
  if (code == ::grpc::StatusCode::DEADLINE_EXCEEDED && *deadline_left() <= kDeadlineSlack) {
    return out_of_time();
  }
  const ReplyHints hints = hints_of(attempt.context().GetServerTrailingMetadata());
  Ended ended = ended_of(attempt, outcome_of(code, attempt.written(), hints), hints);
  learn(attempt, ended.outcome, hints);
  detach(attempt);
  if (!race_) return ended_alone(std::move(ended));
  const HedgedOutcome outcome = ended.outcome;
  const control::AttemptNumber number = ended.number;
  ended_.push_back(std::move(ended));
  ReplicaCandidates found = candidates();
  const HedgeStep step =
      outcome.answered
          ? race_->on_answer(number, {.kind = outcome.answer, .pushback = hints.pushback},
                             moment(found))
          : race_->on_failed(number, {.facts = outcome.failed, .code = 0}, moment(found));
  follow(step, found, outcome.answered || outcome.failed.written);
}

void HedgedPending::on_time() {
  const TimePoint now = core_.now();
  if (now >= start_.deadline) return out_of_time();
  if (now >= retry_at_) {
    retry_at_ = TimePoint::max();
    return begin_next();
  }
  if (now >= patience_at_) move_if_stuck();
  if (!over_ && race_ && now >= race_->timer_at()) {
    ReplicaCandidates found = candidates();
    follow(race_->on_timer(moment(found)), found, true);
  }
}

void HedgedPending::out_of_time() {
  end(HedgedEnd::kFailed, {.status = {::grpc::StatusCode::DEADLINE_EXCEEDED,
                                      "weir: deadline: no replica has answered in time"}});
}

void HedgedPending::end_early(HedgedEnd how, ::grpc::Status status) {
  end(how, {.status = std::move(status)});
}

// ---- attempts that leave

Duration HedgedPending::patience(ReplicaLink& link) const {
  return std::clamp(core_.replicas().hedge_delay(link, start_.kind.reads, core_.now()),
                    kPatienceMin, kPatienceMax);
}

/// The first attempt waits for a connection or a stream, and another replica has one.
void HedgedPending::move_if_stuck() {
  const TimePoint was_due = std::exchange(patience_at_, TimePoint::max());
  const auto stuck = std::find_if(attempts_.begin(), attempts_.end(), [](const auto* attempt) {
    return attempt != nullptr && !attempt->hedge && !attempt->written();
  });
  if (stuck == attempts_.end()) return;
  HedgedAttempt& attempt = **stuck;
  patience_at_ = core_.now() + patience(*attempt.link);
  // Our own thread was late: perhaps it has not seen yet that the headers were sent.
  if (core_.now() - was_due > control::HedgeExecutor::kLate || moves_ == kMovesMax) return;
  ReplicaLink* ready = ReplicaLinks::ready(candidates());
  if (ready == nullptr) return;
  ++moves_;
  ++core_.counts().moved;
  Ended ended = ended_of(attempt, unseen(), {});
  ended.answer.status = {::grpc::StatusCode::UNAVAILABLE,
                         "weir: no connection or stream in time: " + attempt.link->target};
  detach(attempt);
  core_.leave(attempt, false);
  if (race_) return fail_unseen(std::move(ended));
  if (!begin_at({.link = *ready, .number = ++numbers_})) fail_unseen(full_queue(numbers_, *ready));
}

void HedgedPending::detach(HedgedAttempt& attempt) {
  std::replace(attempts_.begin(), attempts_.end(), &attempt, static_cast<HedgedAttempt*>(nullptr));
  attempt.call = nullptr;
}

/// Another attempt has won, or the call is over.
void HedgedPending::lose(HedgedAttempt& attempt, bool beaten, bool paced) {
  if (attempt.written()) {
    const Duration waited = core_.now() - attempt.written_at;
    record(*attempt.link, waited, control::AttemptEnd::kCancelled);
    core_.replicas().learn(*attempt.link,
                           {.latency = waited, .error = false, .censored = true, .beaten = beaten},
                           core_.now());
  }
  detach(attempt);
  core_.leave(attempt, paced);
}

// ---- what a replica is known by

void HedgedPending::record(ReplicaLink& link, Duration waited, control::AttemptEnd how) const {
  if (start_.kind.kind != MethodKind::kRead || !core_.config().hedge.enabled) return;
  link.reads[start_.kind.reads]->record({.latency = waited, .end = how}, core_.now());
}

void HedgedPending::learn(const HedgedAttempt& attempt, const HedgedOutcome& outcome,
                          const ReplyHints& hints) {
  ReplicaLink& link = *attempt.link;
  core_.count_answer(outcome.overload);
  if (outcome.overload) {
    const bool timed = hints.pushback && !hints.pushback->stop;
    link.pushed_back_until =
        core_.now() +
        policy::pushback_period(timed ? std::optional(hints.pushback->wait) : std::nullopt);
  }
  if (!attempt.written()) return;
  const Duration waited = core_.now() - attempt.written_at;
  record(link, waited, outcome.latency);
  core_.replicas().learn(
      link, {.latency = waited, .error = outcome.latency != control::AttemptEnd::kAnswered},
      core_.now());
  link.note(outcome.bad ? policy::HealthEvent::kBadAnswer : policy::HealthEvent::kAnswered,
            core_.now(), core_.rng());
}

HedgedPending::Ended HedgedPending::ended_of(HedgedAttempt& attempt, const HedgedOutcome& outcome,
                                             const ReplyHints& hints) {
  Ended ended{.number = attempt.number,
              .outcome = outcome,
              .hints = hints,
              .link = attempt.link.get(),
              .answer = {}};
  ended.answer.status = attempt.status;
  ended.answer.response = std::move(attempt.response);
  ended.answer.replica = attempt.link->target;
  ended.answer.hedge_won = attempt.hedge;
  if (hints.pushback && !hints.pushback->stop) ended.answer.retry_after = hints.pushback->wait;
  return ended;
}

// ---- the end

void HedgedPending::finish(control::AttemptNumber number) {
  const auto found = std::find_if(ended_.begin(), ended_.end(),
                                  [&](const Ended& ended) { return ended.number == number; });
  Ended& ended = found != ended_.end() ? *found : ended_.back();
  if (ended.outcome.overload && again_after_refusal(ended)) return;
  const bool seen = ended.outcome.answered || ended.outcome.failed.written;
  end(seen ? HedgedEnd::kAnswered : HedgedEnd::kFailed, std::move(ended.answer));
}

void HedgedPending::end(HedgedEnd how, HedgedAnswer answer) {
  WEIR_ASSERT(!over_);
  over_ = true;
  if (race_ && !race_->ended()) static_cast<void>(race_->on_cancelled());
  for (HedgedAttempt* attempt : attempts_) {
    if (attempt != nullptr) lose(*attempt, false, false);
  }
  if (hedged_ && !judged_) ++core_.counts().hedges_failed;
  token_ = {};
  answer.attempts = written_;
  answer.hedged = hedged_;
  core_.end(*this, how, std::move(answer));
}

}  // namespace weir::inline v0::grpc
