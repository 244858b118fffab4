#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "policy/retry_backoff.h"
#include "replica_ends.h"
#include "world.h"

// Reads of a gateway whose attempts may overlap. control::HedgeExecutor decides, as in production;
// this part carries it out at simulated replicas (compare src/upstream/call_race.cc).

namespace weir::inline v0::sim {
namespace {

using control::HedgeStep;
using policy::NoHedge;

policy::FailedAttempt facts_of(ReplicaEnd end) noexcept {
  policy::FailedAttempt failed;
  failed.failure = failure_of(end);
  failed.written = end != ReplicaEnd::kConnectRefused;
  failed.processed = failed.written ? policy::Processed::kMaybe : policy::Processed::kNo;
  return failed;
}

control::AttemptEnd latency_of(ReplicaEnd end) noexcept {
  switch (end) {
    case ReplicaEnd::kOk:
      return control::AttemptEnd::kAnswered;
    case ReplicaEnd::kCancelled:
    case ReplicaEnd::kBeaten:
      return control::AttemptEnd::kCancelled;
    case ReplicaEnd::kTimedOut:
      return control::AttemptEnd::kTimedOut;
    case ReplicaEnd::kBadAnswer:
    case ReplicaEnd::kLost:
    case ReplicaEnd::kConnectRefused:
      break;
  }
  return control::AttemptEnd::kFailed;
}

/// How a loser ends: it says something about its replica if the winner began later.
ReplicaEnd loser_end(const HedgeStep& step, control::AttemptNumber loser) noexcept {
  const bool beaten = step.kind == HedgeStep::Kind::kComplete && step.attempt > loser;
  return beaten ? ReplicaEnd::kBeaten : ReplicaEnd::kCancelled;
}

}  // namespace

// ---- who takes part

void World::build_races(Service& service) {
  const ReplicasSpec& spec = *service.spec->replicas;
  const bool safe = policy::SafeRead::of({.marked_idempotent = spec.idempotent}).has_value();
  if (!spec.hedge || !spec.hedge->enabled || !safe || spec.each.size() < 2) return;
  service.races = std::make_unique<ReadRaces>(service.replicas->budget());
  service.reads = std::make_unique<ReadLatencies>(*spec.hedge, spec.each.size());
}

ReadRace& World::race_of(const Attempt& parent) noexcept {
  return (*services_[parent.service].races)[parent.race];
}

void World::leave_race(Attempt& parent) {
  if (parent.race == kNoAttempt) return;
  services_[parent.service].races->give_back(std::exchange(parent.race, kNoAttempt));
}

// ---- what the executor is told

ReplicaCandidates World::candidates(const Attempt& parent) {
  Service& service = services_[parent.service];
  ReplicaCandidates found = service.replicas->candidates(parent.replica.tried_ones(), now_);
  for (std::size_t i = 0; i < found.count; ++i) {
    found.targets[i].target.median = service.reads->median(found.replicas[i]);
  }
  return found;
}

control::HedgeMoment World::moment(const Attempt& parent, const ReplicaCandidates& found) const {
  const Service& service = services_[parent.service];
  const bool overloaded =
      service.controller && service.controller->is_overloaded(ScopeId::kFirst, now_);
  return {.now = now_,
          .conditions = {.enabled = true,
                         .overloaded = overloaded,
                         .cohort_slow = service.reads->cohort_slow()},
          .candidates = {found.targets.data(), found.count}};
}

void World::hedge_due(Attempt& parent) {
  const ReplicaCandidates found = candidates(parent);
  follow(parent, race_of(parent).executor.on_timer(moment(parent, found)), found, {});
}

void World::race_attempt_ended(Attempt& parent, std::uint32_t child, CallEnd end) {
  Service& service = services_[parent.service];
  ReadRace& race = race_of(parent);
  ReadRace::Place& place = race.with_attempt(child);
  place.attempt = kNoAttempt;
  place.end = replica_end(parent.replica, end);
  place.absent = parent.replica.absent;
  attempt_over(service, place, place.end);
  const bool answered = place.end == ReplicaEnd::kOk || place.end == ReplicaEnd::kBadAnswer;
  const ReplicaEnd how = place.end;
  const control::AttemptNumber number = place.number;
  const bool good = how == ReplicaEnd::kOk;
  const ReplicaCandidates found = good ? ReplicaCandidates{} : candidates(parent);
  if (!answered) {
    place.number = 0;
    return follow(parent,
                  race.executor.on_failed(
                      number, {.facts = facts_of(how), .code = static_cast<std::uint8_t>(how)},
                      moment(parent, found)),
                  found, how);
  }
  policy::AnswerKind kind = policy::AnswerKind::kTryLater;
  if (good) kind = place.absent ? policy::AnswerKind::kAbsent : policy::AnswerKind::kGood;
  follow(parent, race.executor.on_answer(number, {.kind = kind}, moment(parent, found)), found,
         how);
}

/// Tells what an attempt at a replica teaches.
void World::attempt_over(Service& service, const ReadRace::Place& place, ReplicaEnd how) {
  const bool caught = service.replicas->caught_in_silence(place.replica, place.sent_at, now_);
  if (!caught) {
    service.reads->record(place.replica, {now_ - place.sent_at, latency_of(how)}, now_);
  }
  service.replicas->ended(place.replica, how, place.sent_at, now_);
}

// ---- what it decides

/// Carries a step out. `how`: the end of the attempt that caused it.
void World::follow(Attempt& parent, const HedgeStep& step, const ReplicaCandidates& found,
                   ReplicaEnd how) {
  ReadRace& race = race_of(parent);
  note_step(parent, step);
  for (const control::AttemptNumber loser : step.losers()) {
    lose(parent, race.with_number(loser), loser_end(step, loser));
  }
  switch (step.kind) {
    case HedgeStep::Kind::kWait:
    case HedgeStep::Kind::kSetAside:
      return arm_race(parent);
    case HedgeStep::Kind::kComplete: {
      const ReadRace::Place& winner = race.with_number(step.attempt);
      parent.absent = winner.absent;
      if (winner.end == ReplicaEnd::kOk) return complete(parent, Outcome::kOk, CallEnd::kOk);
      return complete(parent, outcome_of(winner.end), CallEnd::kFailed);
    }
    case HedgeStep::Kind::kFail: {
      const auto first = static_cast<ReplicaEnd>(step.code);
      return complete(parent, outcome_of(first == ReplicaEnd::kOk ? how : first), CallEnd::kFailed);
    }
    case HedgeStep::Kind::kBeginLater:
      return begin_later(parent, step, how);
    case HedgeStep::Kind::kBegin:
      return begin_in_race(
          parent,
          {.replica = found.replicas[step.candidate], .number = step.attempt, .hedge = step.hedge});
  }
}

void World::begin_in_race(Attempt& parent, const RaceBegin& begin) {
  Service& service = services_[parent.service];
  ReadRace& race = race_of(parent);
  ReadRace::Place& place = race.free_place();
  place = {.number = begin.number, .replica = begin.replica, .sent_at = now_};
  const bool first = parent.replica.attempts == 0;
  parent.replica.note_tried(begin.replica);
  if (first) {
    service.replicas->sent(begin.replica, now_);
  } else {
    service.replicas->sent_again(begin.replica, now_);
  }
  ServiceTotals& totals = recorder_.service(service.index);
  ++totals.replica_tries;
  if (begin.hedge) {
    race.hedged = true;
    ++totals.hedges.sent;
  }
  race.executor.on_written(begin.number, service.reads->delay(begin.replica, now_), now_);
  arm_race(parent);
  parent.call_at = static_cast<std::uint16_t>(begin.replica);
  start_inner_call(parent, &place.attempt);
}

/// The first attempt, or the next one after all have ended.
void World::next_in_race(Attempt& parent, std::uint32_t replica) {
  Service& service = services_[parent.service];
  ReadRace& race = race_of(parent);
  control::RedundancyBudget& budget = service.replicas->budget(replica);
  if (!race.executor.ended()) {
    return begin_in_race(parent, {.replica = replica, .number = race.executor.restart(budget)});
  }
  control::HedgeExecutor::Call call;
  call.attempts_max = service.spec->replicas->attempts_max;
  if (parent.parent != kNoAttempt) call.caller_attempt = parent.number;
  if (parent.deadline != TimePoint{}) call.deadline = parent.deadline;
  const auto read = policy::SafeRead::of({.marked_idempotent = true});
  begin_in_race(parent, {.replica = replica, .number = race.executor.begin(*read, call, budget)});
}

/// No attempt is under way, and no other replica can be asked at once.
void World::begin_later(Attempt& parent, const HedgeStep& step, ReplicaEnd how) {
  const Service& service = services_[parent.service];
  const bool other = service.replicas->other_open(parent.replica.tried_ones());
  if (how == ReplicaEnd::kConnectRefused && !other && !service.replicas->other_open({})) {
    return hold_for_replica(parent);
  }
  policy::RetryMoment moment;
  moment.retries = race_of(parent).retries;
  moment.other_available = other || step.same_endpoint;
  moment.pushback = step.wait;
  if (parent.deadline != TimePoint{}) moment.deadline_left = parent.deadline - now_;
  const auto wait = policy::retry_wait(moment, {}, callers_[service.first_caller].rng);
  if (!wait) return complete(parent, outcome_of(how), CallEnd::kFailed);
  if (step.again == policy::SendAgainReason::kIdempotent) ++race_of(parent).retries;
  resend(parent, *wait);
}

// ---- ends of attempts by the gateway

/// Another attempt has won, or nobody waits any more.
void World::lose(Attempt& parent, ReadRace::Place& place, ReplicaEnd how) {
  Service& service = services_[parent.service];
  place.number = 0;
  if (place.attempt == kNoAttempt) return;  // it was answered, and the answer is not used
  Attempt& child = attempts_[std::exchange(place.attempt, kNoAttempt)];
  attempt_over(service, place, how);
  const bool arrives = child.state != AttemptState::kToCaller && !child.lost;
  if (!service.spec->replicas->cancel && arrives) return lose_caller(child, false);
  if (child.state == AttemptState::kServing) {
    Service& replica = services_[child.service];
    ServiceTotals& totals = recorder_.service(replica.index);
    const Duration paused = replica.paused_total - child.paused_at_start;
    const auto worked = static_cast<double>((now_ - child.serving_from - paused).count());
    totals.busy_ns += std::max(worked, 0.0);
    totals.wasted_ns += std::max(worked, 0.0);
  }
  abandon(child);
  attempts_.give_back(child);
}

void World::cancel_race(Attempt& parent) {
  ReadRace& race = race_of(parent);
  const HedgeStep step = race.executor.on_cancelled();
  for (const control::AttemptNumber loser : step.losers())
    lose(parent, race.with_number(loser), ReplicaEnd::kCancelled);
  leave_race(parent);
}

/// Its replica is silent. Without a token the attempt goes on, since an answer may still come.
bool World::may_move(const Attempt& parent, const ReadRace::Place& place) {
  ReadRace& race = race_of(parent);
  for (const ReadRace::Place& other : race.places) {
    if (&other != &place && other.attempt != kNoAttempt) return true;  // that one goes on
  }
  Service& service = services_[parent.service];
  policy::CallProgress progress;
  progress.attempts = race.executor.attempts();
  if (parent.parent != kNoAttempt) progress.caller_attempt = parent.number;
  if (parent.deadline != TimePoint{}) progress.deadline_left = parent.deadline - now_;
  const policy::SendAgainDecision decision = policy::may_send_again(
      facts_of(ReplicaEnd::kCancelled), {.idempotent = true, .body_kept = true}, progress,
      {.attempts_max = service.spec->replicas->attempts_max});
  ReplicaPool& pool = *service.replicas;
  return decision.verdict != policy::SendAgain::kNo &&
         pool.budget().balance_millitokens() >= policy::kRedundancyToken &&
         pool.budget(place.replica).balance_millitokens() >= policy::kRedundancyToken &&
         pool.other_open(parent.replica.tried_ones());
}

void World::rescue_in_race(Attempt& parent, std::uint32_t replica) {
  ReadRace& race = race_of(parent);
  for (ReadRace::Place& place : race.places) {
    if (place.attempt == kNoAttempt || place.replica != replica) continue;
    if (!may_move(parent, place)) return;
    const control::AttemptNumber number = place.number;
    lose(parent, place, ReplicaEnd::kCancelled);
    const ReplicaCandidates found = candidates(parent);
    constexpr auto kHow = ReplicaEnd::kCancelled;
    return follow(parent,
                  race.executor.on_failed(
                      number, {.facts = facts_of(kHow), .code = static_cast<std::uint8_t>(kHow)},
                      moment(parent, found)),
                  found, kHow);
  }
}

// ---- the timer and the counts

void World::arm_race(Attempt& parent) {
  const TimePoint at = race_of(parent).executor.timer_at();
  if (at == TimePoint::max()) {
    ++parent.token;
  } else {
    schedule(parent, std::max(at - now_, Duration(0)), Kind::kHedgeDue);
  }
}

void World::note_step(Attempt& parent, const HedgeStep& step) {
  ReadRace& race = race_of(parent);
  HedgeTotals& totals = recorder_.service(parent.service).hedges;
  const auto note = [&](NoHedge reason) {
    if (!std::exchange(race.noted, true)) ++totals.not_sent[static_cast<std::size_t>(reason)];
  };
  if (step.no_hedge != NoHedge::kNone) note(step.no_hedge);
  const bool completed = step.kind == HedgeStep::Kind::kComplete;
  if (!completed && step.kind != HedgeStep::Kind::kFail) return;
  if (!race.hedged) return note(NoHedge::kNotNeeded);
  ++(!completed ? totals.failed : step.hedge ? totals.won : totals.lost);
}

}  // namespace weir::inline v0::sim
