#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "weir/base/assert.h"

#include "world.h"

// The services: admission, the queue for the workers, the work, and its end.

namespace weir::inline v0::sim {
namespace {

constexpr Duration kConnectRefused = std::chrono::microseconds(200);

policy::DecisionEnd end_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kOk:
      return policy::DecisionEnd::kOk;
    case Outcome::kIgnored:
      return policy::DecisionEnd::kIgnored;
    case Outcome::kOverload:
      return policy::DecisionEnd::kOverload;
    case Outcome::kError:
      break;
  }
  return policy::DecisionEnd::kError;
}

}  // namespace

void World::on_ready(Waiter& waiter) noexcept {
  auto* attempt = static_cast<Attempt*>(waiter.context());
  static_cast<World*>(attempt->world)->ready_.push_back(attempt->index);
}

void World::reach(Attempt& attempt) {
  Service& service = services_[attempt.service];
  if (attempt.cohort != kNoAttempt) ++recorder_.calls(attempt.cohort).arrived;
  if (!service.controller) return dispatch(attempt);
  attempt.waits_from = now_;
  AdmissionRequest request;
  request.priority = attempt.priority;
  request.bytes = attempt.bytes;
  request.cost = attempt.cost;
  request.deadline = attempt.deadline;
  request.hedge = attempt.hedge;
  if (attempt.load != kNoAttempt) {
    const Load& load = loads_[attempt.load];
    if (attempt.actor != kNoAttempt) request.actor = load.actors[attempt.actor];
    if (attempt.peer != kNoAttempt) request.peer = load.peers[attempt.peer];
  }
  Entered entered = service.controller->enter(request, attempt.waiter, now_);
  if (sink_) attempt.load_then = service.controller->load(ScopeId::kFirst);
  switch (entered.kind) {
    case Entered::Kind::kAdmitted:
      attempt.permit = std::move(entered.permit);
      dispatch(attempt);
      break;
    case Entered::Kind::kRefused:
      refuse(attempt, entered.reason);
      break;
    case Entered::Kind::kWaiting:
      attempt.state = AttemptState::kWaiting;
      ++attempt.token;
      if (attempt.waiter.expires_at() < service.next_expire) {
        service.next_expire = attempt.waiter.expires_at();
        schedule(std::max(now_, service.next_expire), Kind::kExpire, service.index);
      }
      break;
  }
  collect_ready();
}

void World::refuse(Attempt& attempt, Reason reason) {
  Service& service = services_[attempt.service];
  ServiceTotals& totals = recorder_.service(service.index);
  ++totals.refused[index_of(reason)];
  if (sink_) record(attempt, policy::DecisionEnd::kRefused, reason);
  totals.refusal.add(now_ - attempt.waits_from);
  if (attempt.cohort != kNoAttempt) ++recorder_.calls(attempt.cohort).refused;
  if (!attempt.has_caller) return attempts_.give_back(attempt);
  Caller& caller = callers_[attempt.caller];
  attempt.hint = {};
  if (caller.spec->retry.kind == RetryKind::kHint && facts_of(reason).pushback) {
    attempt.hint = service.controller->retry_after(ScopeId::kFirst, now_, caller.rng);
  }
  answer(attempt, CallEnd::kRefused);
}

void World::collect_ready() {
  if (collecting_) return;  // the outer call handles them
  collecting_ = true;
  // NOLINTNEXTLINE(modernize-loop-convert): it grows during the iteration
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    Attempt& attempt = attempts_[ready_[i]];
    Service& service = services_[attempt.service];
    Result<Permit, Reason> result = service.controller->collect(attempt.waiter, now_);
    if (sink_) attempt.load_then = service.controller->load(ScopeId::kFirst);
    if (result) {
      attempt.permit = std::move(result).value();
      recorder_.service(service.index).wait.add(now_ - attempt.waits_from);
      dispatch(attempt);
    } else {
      refuse(attempt, result.error());
    }
  }
  ready_.clear();
  collecting_ = false;
}

void World::dispatch(Attempt& attempt) {
  Service& service = services_[attempt.service];
  ServiceTotals& totals = recorder_.service(service.index);
  const ServiceSpec& spec = *service.spec;
  attempt.dispatched_at = now_;
  attempt.counted = true;
  ++totals.dispatched;
  totals.in_flight_max = std::max(totals.in_flight_max, ++service.in_flight);
  if (spec.timeout.count() > 0) {
    add_timeout(service.late, attempt, spec.timeout, Kind::kServiceLate, service.index);
  }
  if (now_ < service.down_until) {
    attempt.state = AttemptState::kTurnedAway;
    attempt.turned_away = true;
    return schedule(attempt, kConnectRefused, Kind::kTurnedAway);
  }
  ++service.inside;
  if (spec.sharing || (service.queue.size == 0 && fits(service, attempt))) {
    return begin_service(attempt);
  }
  attempt.state = AttemptState::kQueued;
  ++attempt.token;
  service.queue.push_back(attempts_, attempt);
  if (service.queue.size > spec.queue_max) {
    attempt.fails = true;
    return complete(attempt, Outcome::kOverload, CallEnd::kFailed);
  }
  totals.queue_max = std::max(totals.queue_max, service.queue.size);
  if (spec.memory && memory_of(service) >= 1) crash(service, spec.memory->restart);
}

void World::begin_service(Attempt& attempt) {
  Service& service = services_[attempt.service];
  const ServiceSpec& spec = *service.spec;
  attempt.held =
      spec.sharing
          ? attempt.width
          : static_cast<std::uint16_t>(std::min<std::uint32_t>(attempt.width, service.workers));
  service.busy += attempt.held;
  service.running.push_back(attempts_, attempt);
  attempt.state = AttemptState::kServing;
  attempt.holds_worker = true;
  attempt.serving_from = now_;
  attempt.paused_before = attempt.paused_at_start = service.paused_total;
  recorder_.service(service.index).queue.add(now_ - attempt.dispatched_at);
  if (service.absent_share > 0) attempt.absent = service.rng.chance(service.absent_share);
  Duration time{};
  if (service.error_share > 0 && service.rng.chance(service.error_share)) {
    attempt.fails = true;
    time = service.error_time;
  } else {
    double factor = service.slow;
    if (spec.contention > 0 && service.inside > service.workers) {
      factor *= 1 + spec.contention * static_cast<double>(service.inside - service.workers);
    }
    time = work_of(attempt).draw(service.rng);
    if (factor != 1) {
      time = Duration(static_cast<std::int64_t>(static_cast<double>(time.count()) * factor));
    }
  }
  if (spec.sharing) return share(service, attempt, time);
  schedule(attempt, time, Kind::kServed);
}

const Distribution& World::work_of(const Attempt& attempt) const noexcept {
  const ServiceSpec& service = *services_[attempt.service].spec;
  if (service.is_gateway || attempt.load == kNoAttempt) return service.time;
  const LoadSpec& load = *loads_[attempt.load].spec;
  return load.time ? *load.time : service.time;
}

void World::served(Attempt& attempt) {
  Service& service = services_[attempt.service];
  const Duration owed = service.paused_total - attempt.paused_before;
  if (owed.count() > 0) {
    attempt.paused_before = service.paused_total;
    return schedule(attempt, owed, Kind::kServed);
  }
  ServiceTotals& totals = recorder_.service(service.index);
  const Duration paused = service.paused_total - attempt.paused_at_start;
  const auto worked = static_cast<double>((now_ - attempt.serving_from - paused).count());
  totals.busy_ns += worked;
  if (!attempt.has_caller) totals.wasted_ns += worked;
  if (attempt.fails) return complete(attempt, Outcome::kError, CallEnd::kFailed);
  if (service.spec->calls.empty()) return complete(attempt, Outcome::kOk, CallEnd::kOk);
  attempt.state = AttemptState::kCalling;
  ++attempt.token;
  if (!service.spec->holds_worker || service.spec->sharing) {
    release_workers(service, attempt);
    pull(service);
  }
  if (service.replicas) return begin_replica_call(attempt);
  start_inner_call(attempt);
}

void World::inner_call_ended(Attempt& parent, std::uint32_t child, CallEnd end) {
  WEIR_ASSERT(parent.state == AttemptState::kCalling);
  const Service& service = services_[parent.service];
  if (parent.race != kNoAttempt) return race_attempt_ended(parent, child, end);
  if (service.replicas) return replica_call_ended(parent, end);
  if (end == CallEnd::kOk) {
    if (++parent.call_at < service.spec->calls.size()) return start_inner_call(parent);
    return complete(parent, Outcome::kOk, CallEnd::kOk);
  }
  // A refusal by the admission behind it is passed on and is no overload of this tier; a call that
  // is not answered in time is.
  const Outcome outcome = end == CallEnd::kTimedOut ? Outcome::kOverload : Outcome::kError;
  complete(parent, outcome, CallEnd::kFailed);
}

void World::leave_service(Service& service, Attempt& attempt) {
  ++attempt.token;
  leave_hold(attempt);
  leave_race(attempt);
  if (attempt.state == AttemptState::kTurnedAway) return;
  --service.inside;
  if (attempt.state == AttemptState::kQueued) {
    service.queue.remove(attempts_, attempt);
    return;
  }
  service.running.remove(attempts_, attempt);
  release_workers(service, attempt);
}

bool World::fits(const Service& service, const Attempt& attempt) const noexcept {
  const std::uint32_t width = std::min<std::uint32_t>(attempt.width, service.workers);
  return service.busy + width <= service.workers && now_ >= service.paused_until;
}

void World::release_workers(Service& service, Attempt& attempt) {
  if (!attempt.holds_worker) return;
  attempt.holds_worker = false;
  service.busy -= attempt.held;
  reshare(service);
}

void World::finish_permit(Service& service, Attempt& attempt, Outcome outcome) {
  if (attempt.counted) {
    attempt.counted = false;
    --service.in_flight;
  }
  if (!attempt.permit) return;
  if (sink_) record(attempt, end_of(outcome), Reason::kAdmitted);
  std::move(attempt.permit).finish(outcome, now_);
}

void World::record(const Attempt& attempt, policy::DecisionEnd end, Reason reason) {
  policy::RecordedDecision decision;
  const bool refused = end == policy::DecisionEnd::kRefused;
  decision.at = attempt.waits_from.time_since_epoch();
  decision.actor = attempt.actor == kNoAttempt ? 0 : attempt.actor + 1;
  decision.peer = static_cast<std::uint16_t>(attempt.peer == kNoAttempt ? 0 : attempt.peer + 1);
  decision.scope = static_cast<std::uint16_t>(attempt.service);
  decision.priority = attempt.priority;
  decision.hedge = attempt.hedge;
  decision.end = end;
  decision.reason = static_cast<std::uint8_t>(reason);
  decision.limit = attempt.load_then.limit;
  decision.in_flight = attempt.load_then.in_flight;
  decision.waiting = attempt.load_then.waiting;
  decision.wait = (refused ? now_ : attempt.dispatched_at) - attempt.waits_from;
  if (!refused) decision.latency = now_ - attempt.dispatched_at;
  decision.bytes = attempt.bytes;
  decision.cost = attempt.cost;
  sink_(decision);
}

void World::complete(Attempt& attempt, Outcome outcome, CallEnd end) {
  Service& service = services_[attempt.service];
  leave_service(service, attempt);
  pull(service);
  if (end == CallEnd::kOk) {
    ServiceTotals& totals = recorder_.service(service.index);
    ++totals.completed;
    if (attempt.has_caller) totals.dispatch.add(now_ - attempt.dispatched_at);
  }
  finish_permit(service, attempt, outcome);
  if (attempt.has_caller) {
    answer(attempt, end);
  } else {
    attempts_.give_back(attempt);
  }
  collect_ready();
}

void World::answer(Attempt& attempt, CallEnd end) {
  Caller& caller = callers_[attempt.caller];
  attempt.state = AttemptState::kToCaller;
  attempt.end = end;
  const std::optional<Duration> time = link_time(caller);
  if (!time) {
    ++attempt.token;
    return;  // only the caller's timeout ends it
  }
  if (time->count() == 0 && !stalls_) return answered(attempt);
  schedule(attempt, *time, Kind::kAnswered);
}

void World::pull(Service& service) {
  while (service.queue.size > 0 && now_ >= service.down_until) {
    Attempt& next = attempts_[service.queue.first];
    if (!fits(service, next)) return;
    service.queue.remove(attempts_, next);
    begin_service(next);
  }
}

// Work that a worker has begun runs to its end, even if its caller has left.
bool World::survives(const Attempt& attempt) const noexcept {
  return attempt.state == AttemptState::kServing && !services_[attempt.service].spec->stops_running;
}

Attempt& World::detach_caller(Attempt& attempt) {
  Attempt& heir = attempts_.take();
  heir.inherit(attempt);
  heir.state = AttemptState::kToCaller;
  if (heir.parent != kNoAttempt) {
    Attempt& parent = attempts_[heir.parent];
    const bool racing = parent.race != kNoAttempt;
    (racing ? race_of(parent).with_attempt(attempt.index).attempt : parent.child) = heir.index;
  }
  attempt.message = kNoAttempt;
  attempt.has_caller = false;
  attempt.parent = kNoAttempt;
  ++attempt.life;
  return heir;
}

// Removes an attempt from its service; the call continues without it.
void World::abandon(Attempt& attempt) {
  Service& service = services_[attempt.service];
  switch (attempt.state) {
    case AttemptState::kWaiting: {
      const bool left = service.controller->cancel(attempt.waiter);
      WEIR_ASSERT(left);
      std::destroy_at(&attempt.waiter);
      std::construct_at(&attempt.waiter, &World::on_ready, &attempt);
      return;
    }
    case AttemptState::kCalling:
      abandon_child(attempt);
      break;
    case AttemptState::kQueued:
    case AttemptState::kServing:
    case AttemptState::kTurnedAway:
      break;
    default:
      ++attempt.token;
      return;
  }
  leave_service(service, attempt);
  pull(service);
  finish_permit(service, attempt, Outcome::kIgnored);
}

// The same for the call that an attempt is blocked on.
void World::abandon_child(Attempt& parent) {
  if (parent.race != kNoAttempt) return cancel_race(parent);
  if (parent.replica.in_flight) cancel_replica_call(parent);
  if (parent.child == kNoAttempt) return;
  Attempt& child = attempts_[parent.child];
  parent.child = kNoAttempt;
  const bool cancels = callers_[child.caller].spec->cancels;
  const bool at_service =
      child.state == AttemptState::kWaiting || child.state == AttemptState::kQueued ||
      child.state == AttemptState::kServing || child.state == AttemptState::kCalling;
  if (at_service && (!cancels || survives(child))) return lose_caller(child, cancels);
  abandon(child);
  attempts_.give_back(child);
}

void World::lose_caller(Attempt& attempt, bool noticed) {
  attempt.has_caller = false;
  attempt.parent = kNoAttempt;
  ++attempt.life;
  if (noticed) finish_permit(services_[attempt.service], attempt, Outcome::kIgnored);
}

// The gateway in front of the service stops waiting for an answer.
void World::service_late(Attempt& attempt) {
  const bool inside = attempt.state == AttemptState::kQueued ||
                      attempt.state == AttemptState::kServing ||
                      attempt.state == AttemptState::kCalling;
  if (!inside) return;
  if (!survives(attempt)) {
    if (attempt.state == AttemptState::kCalling) abandon_child(attempt);
    return complete(attempt, Outcome::kOverload, CallEnd::kFailed);
  }
  Attempt& heir = detach_caller(attempt);
  finish_permit(services_[attempt.service], attempt, Outcome::kOverload);
  answer(heir, CallEnd::kFailed);
  collect_ready();
}

}  // namespace weir::inline v0::sim
