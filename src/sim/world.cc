#include "world.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir::inline v0::sim {
namespace {

std::vector<Cohort> cohorts_of(const Scenario& scenario) {
  std::vector<Cohort> cohorts;
  for (std::uint32_t i = 0; i < scenario.loads.size(); ++i) {
    const LoadSpec& load = scenario.loads[i];
    for (const Priority p : kPriorities) {
      const bool used = load.arrivals == ArrivalKind::kTrace
                            ? std::any_of(load.trace.begin(), load.trace.end(),
                                          [p](const TraceRow& row) { return row.priority == p; })
                            : load.priority == p;
      if (used) cohorts.push_back({i, p});
    }
  }
  return cohorts;
}

std::vector<Identity> identities(const AdmissionController* controller,
                                 const std::vector<std::string>& names) {
  std::vector<Identity> all;
  all.reserve(names.size());
  for (const std::string& name : names) {
    all.push_back(controller != nullptr ? controller->identify(name) : Identity{});
  }
  return all;
}

}  // namespace

World::World(const Scenario& scenario, const PolicyMaker& make_policy)
    : scenario_(scenario),
      stop_(TimePoint(scenario.duration)),
      end_(stop_ + scenario.drain),
      recorder_(scenario, cohorts_of(scenario)),
      loads_(scenario.loads.size()),
      services_(scenario.services.size()),
      attempts_(&World::on_ready, this) {
  build(make_policy);
}

World::~World() {
  for (std::uint32_t i = 0; i < attempts_.size(); ++i) {
    Attempt& attempt = attempts_[i];
    if (attempt.state != AttemptState::kWaiting) continue;
    const bool left = services_[attempt.service].controller->cancel(attempt.waiter);
    WEIR_ASSERT(left);
  }
}

void World::build(const PolicyMaker& make_policy) {
  Rng root(scenario_.seed);
  for (std::uint32_t i = 0; i < services_.size(); ++i) build_service(i, root, make_policy);
  build_senders();
  for (std::uint32_t i = 0; i < loads_.size(); ++i) build_load(i, root);
  schedule(TimePoint(recorder_.bucket()), Kind::kBucket, 0);
}

void World::add_caller(const CallerSpec& spec, std::uint32_t to, Rng& root) {
  Caller& caller = callers_.emplace_back();
  caller.spec = &spec;
  caller.service = to;
  caller.rng = root.fork();
}

void World::build_service(std::uint32_t index, Rng& root, const PolicyMaker& make_policy) {
  Service& service = services_[index];
  service.spec = &scenario_.services[index];
  service.index = index;
  service.workers = service.spec->workers;
  service.rng = root.fork();
  service.watch.totals = &recorder_.service(index);
  service.active.assign(service.spec->faults.size(), false);
  service.first_caller = static_cast<std::uint32_t>(callers_.size());
  for (const CallSpec& call : service.spec->calls) add_caller(call.caller, call.to, root);
  Rng admission_rng = root.fork();
  if (service.spec->admission) {
    service.controller = std::make_unique<AdmissionController>(*service.spec->admission,
                                                               admission_rng, &service.watch);
    if (make_policy) {
      service.controller->set_policy(ScopeId::kFirst,
                                     make_policy(*service.spec, admission_rng.fork()));
    }
    ServiceTotals& totals = recorder_.service(index);
    totals.limit_end = service.controller->scope_stats(ScopeId::kFirst, now_).limit;
    totals.limit_min = totals.limit_max = totals.limit_end;
  }
  if (service.spec->replicas) build_replicas(service, root);
  if (service.spec->gateways > 1) build_gateways(service);
  if (service.spec->admission || service.spec->memory) schedule(now_, Kind::kTick, index);
  for (std::uint32_t i = 0; i < service.spec->faults.size(); ++i) {
    stalls_ = stalls_ || service.spec->faults[i].kind == FaultKind::kStall;
    schedule(TimePoint(service.spec->faults[i].at), Kind::kFault, index, i);
  }
}

void World::build_load(std::uint32_t index, Rng& root) {
  Load& load = loads_[index];
  load.spec = &scenario_.loads[index];
  load.caller = static_cast<std::uint32_t>(callers_.size());
  add_caller(load.spec->caller, load.spec->to, root);
  load.rng = root.fork();
  load.profile = RateProfile(load.spec->rate, load.spec->shape);
  load.profile.seek(load.spec->starts);
  for (std::uint32_t i = 0; i < recorder_.cohorts().size(); ++i) {
    const Cohort& cohort = recorder_.cohorts()[i];
    if (cohort.load == index) load.cohorts[index_of(cohort.priority)] = i;
  }
  const AdmissionController* controller = services_[load.spec->to].controller.get();
  for (std::uint32_t i = 0; i < std::max(load.spec->actors, load.spec->peers); ++i) {
    load.names.push_back(load.spec->name + "-" + std::to_string(i + 1));
  }
  if (load.spec->actors > 0) load.actors = identities(controller, load.names);
  if (load.spec->peers > 0) load.peers = identities(controller, load.names);
  if (load.spec->arrivals == ArrivalKind::kClosed) {
    for (std::uint32_t i = 0; i < load.spec->clients; ++i) {
      const Duration first = load.spec->starts + load.spec->think.draw(load.rng);
      schedule(TimePoint(first), Kind::kThought, index);
    }
  } else if (load.spec->arrivals == ArrivalKind::kBursts) {
    schedule(TimePoint(load.spec->starts), Kind::kArrival, index);
  } else {
    schedule_arrival(index);
  }
}

void World::run_until(TimePoint until) {
  while (!events_.empty() && events_.next_at() <= until) {
    const SimEvent event = events_.pop();
    now_ = event.at;
    ++balance_.events;
    handle(event);
  }
  now_ = until;
}

void World::handle(const SimEvent& event) {
  if (stalls_) {
    if (const auto later = after_stall(event)) {
      return schedule(*later, static_cast<Kind>(event.kind), event.subject, event.token);
    }
  }
  switch (static_cast<Kind>(event.kind)) {
    case Kind::kArrival:
      if (event.token == 0) return arrive(event.subject);
      return start_call(event.subject, nullptr);  // a late member of a burst
    case Kind::kThought:
      return start_call(event.subject, nullptr);
    case Kind::kReach:
    case Kind::kServed:
    case Kind::kTurnedAway:
    case Kind::kAnswered:
    case Kind::kRetry:
    case Kind::kReplicaRetry:
    case Kind::kHedgeDue:
      return handle_attempt(event);
    case Kind::kSenderTick:
      return tick_sender(event.subject);
    case Kind::kReplicaTick:
      return tick_replicas(services_[event.subject]);
    case Kind::kTimeouts:
      return run_lane(callers_[event.subject].lane, Kind::kTimeouts, event.subject);
    case Kind::kServiceLate:
      return run_lane(services_[event.subject].late, Kind::kServiceLate, event.subject);
    case Kind::kTick:
      return tick(services_[event.subject]);
    case Kind::kExpire:
      return expire(services_[event.subject]);
    case Kind::kFault:
      return begin_fault(services_[event.subject], event.token);
    case Kind::kFaultEnd:
      return end_fault(services_[event.subject], event.token);
    case Kind::kShared:
      if (services_[event.subject].shared_token != event.token) return;
      return served_shared(services_[event.subject]);
    case Kind::kExchange:
      return exchange(services_[event.subject], event.token);
    case Kind::kBucket:
      return close_bucket();
  }
}

void World::handle_attempt(const SimEvent& event) {
  Attempt& attempt = attempts_[event.subject];
  if (attempt.token != event.token) return;  // cancelled
  switch (static_cast<Kind>(event.kind)) {
    case Kind::kReach:
      return reach(attempt);
    case Kind::kServed:
      return served(attempt);
    case Kind::kTurnedAway:
      return complete(attempt, Outcome::kOverload, CallEnd::kFailed);
    case Kind::kAnswered:
      return answered(attempt);
    case Kind::kRetry:
      return send(attempt);
    case Kind::kReplicaRetry:
      return send_to_replica(attempt);
    case Kind::kHedgeDue:
      return hedge_due(attempt);
    default:
      WEIR_UNREACHABLE();
  }
}

void World::close_bucket() {
  for (Service& service : services_) {
    ServiceTotals& totals = recorder_.service(service.index);
    totals.in_flight_end = service.in_flight;
    if (service.controller) {
      const ScopeStats stats = service.controller->scope_stats(ScopeId::kFirst, now_);
      totals.limit_end = stats.limit;
      totals.waiting_end = stats.waiting;
      totals.baseline_ms = static_cast<float>(to_millis(stats.baseline));
    }
  }
  recorder_.close_bucket();
  if (now_ < end_) schedule(now_ + recorder_.bucket(), Kind::kBucket, 0);
}

void World::Watch::on_limit_change(const LimitChange& change) noexcept {
  totals->limit_end = change.new_limit;
  totals->limit_min = std::min(totals->limit_min, change.new_limit);
  totals->limit_max = std::max(totals->limit_max, change.new_limit);
}

Balance World::balance() const {
  Balance balance = balance_;
  for (std::uint32_t i = 0; i < attempts_.size(); ++i) {
    const Attempt& attempt = attempts_[i];
    const bool is_call =
        attempt.state != AttemptState::kFree && attempt.has_caller && attempt.parent == kNoAttempt;
    if (is_call) ++balance.unfinished;
  }
  for (const Service& service : services_) {
    if (service.controller) balance.critical_shed += service.controller->stats().critical_shed;
  }
  return balance;
}

}  // namespace weir::inline v0::sim
