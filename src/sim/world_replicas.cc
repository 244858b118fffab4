#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/base/assert.h"

#include "policy/retry_backoff.h"
#include "policy/send_again.h"
#include "replica_ends.h"
#include "world.h"

// The replicas behind a gateway: choice, another attempt after a failure, and what the gateway does
// when a replica falls silent.

namespace weir::inline v0::sim {
namespace {

constexpr std::uint32_t kHeldMax = 1024;  // hold_requests_max of an upstream

}  // namespace

void World::build_replicas(Service& service, Rng& root) {
  service.replicas = std::make_unique<ReplicaPool>(*service.spec->replicas, root.fork());
  build_races(service);
  schedule(now_, Kind::kReplicaTick, service.index);
}

void World::begin_replica_call(Attempt& parent) {
  Service& service = services_[parent.service];
  parent.replica = {};
  service.replicas->deposit();
  if (service.races) parent.race = service.races->take();
  send_to_replica(parent);
}

void World::send_to_replica(Attempt& parent) {
  Service& service = services_[parent.service];
  ReplicaCall& call = parent.replica;
  if (!may_leave_hold(parent)) return hold_for_replica(parent);
  const policy::Choice choice = service.replicas->choose(call.tried_ones(), now_);
  if (!choice.found()) return hold_for_replica(parent);
  leave_hold(parent);
  if (parent.race != kNoAttempt) return next_in_race(parent, choice.index);
  call.note_sent(choice.index, now_);
  service.replicas->sent(choice.index, now_);
  ++recorder_.service(service.index).replica_tries;
  parent.call_at = static_cast<std::uint16_t>(choice.index);
  start_inner_call(parent);
}

// No replica can be used: the request looks again, for a bounded time. As in production it gives
// its units back meanwhile, and it gives no latency sample.
void World::hold_for_replica(Attempt& parent) {
  Service& service = services_[parent.service];
  ReplicaCall& call = parent.replica;
  if (!call.held) {
    if (service.held >= kHeldMax) return complete(parent, Outcome::kOverload, CallEnd::kFailed);
    call.held = true;
    ++service.held;
    call.held_until = now_ + service.spec->replicas->hold_max;
  }
  if (now_ >= call.held_until) return complete(parent, Outcome::kOverload, CallEnd::kFailed);
  service.replicas->wanted(now_);
  schedule(parent, ReplicaPool::kTickEvery, Kind::kReplicaRetry);
  if (!parent.permit || !parent.permit.has_units()) return;
  parent.permit.skip_sample();
  parent.permit.give_units_back(now_);
  parent.counted = false;
  --service.in_flight;
  collect_ready();
}

// A replica must be there before the limit is asked: units that are not used would keep others out.
bool World::may_leave_hold(Attempt& parent) {
  if (!parent.permit || parent.permit.has_units()) return true;
  Service& service = services_[parent.service];
  if (!service.replicas->other_open({}) || !parent.permit.try_take_units()) return false;
  parent.counted = true;
  ServiceTotals& totals = recorder_.service(service.index);
  totals.in_flight_max = std::max(totals.in_flight_max, ++service.in_flight);
  return true;
}

void World::leave_hold(Attempt& parent) noexcept {
  if (!std::exchange(parent.replica.held, false)) return;
  --services_[parent.service].held;
}

void World::replica_call_ended(Attempt& parent, CallEnd end) {
  Service& service = services_[parent.service];
  ReplicaCall& call = parent.replica;
  const ReplicaEnd how = replica_end(call, end);
  call.in_flight = false;
  service.replicas->ended(call.current, how, call.sent_at, now_);
  parent.absent = call.absent;
  if (how == ReplicaEnd::kOk) return complete(parent, Outcome::kOk, CallEnd::kOk);
  if (const auto wait = wait_to_resend(parent, how)) return resend(parent, *wait);
  complete(parent, outcome_of(how), CallEnd::kFailed);
}

/// Whether the request may be sent again and the budget allows it, and after which time. Takes the
/// token.
std::optional<Duration> World::wait_to_resend(const Attempt& parent, ReplicaEnd how) {
  const Service& service = services_[parent.service];
  const ReplicasSpec& spec = *service.spec->replicas;
  const ReplicaCall& call = parent.replica;
  policy::FailedAttempt failed;
  failed.failure = failure_of(how);
  failed.written = how != ReplicaEnd::kConnectRefused;
  failed.processed = failed.written ? policy::Processed::kMaybe : policy::Processed::kNo;
  policy::CallProgress progress;
  progress.attempts = call.attempts;
  // A service that calls this one says how often it has tried; clients of a load do not.
  if (parent.parent != kNoAttempt) progress.caller_attempt = parent.number;
  if (parent.deadline != TimePoint{}) progress.deadline_left = parent.deadline - now_;
  const policy::SendAgainDecision decision =
      policy::may_send_again(failed, {.idempotent = spec.idempotent, .body_kept = true}, progress,
                             {.attempts_max = spec.attempts_max});
  if (decision.verdict == policy::SendAgain::kNo) return std::nullopt;
  policy::RetryMoment moment;
  moment.retries = call.attempts - 1;
  moment.other_available = service.replicas->other_open(call.tried_ones());
  moment.pushback = decision.wait;
  moment.deadline_left = progress.deadline_left;
  const auto wait = policy::retry_wait(moment, {}, callers_[service.first_caller].rng);
  if (!wait) return std::nullopt;
  const bool from_budget = decision.verdict == policy::SendAgain::kFromBudget;
  if (from_budget && !service.replicas->take_budget(call.current)) return std::nullopt;
  return wait;
}

void World::resend(Attempt& parent, Duration wait) {
  if (wait.count() == 0) return send_to_replica(parent);
  schedule(parent, wait, Kind::kReplicaRetry);
}

void World::cancel_replica_call(Attempt& parent) {
  ReplicaCall& call = parent.replica;
  call.in_flight = false;
  services_[parent.service].replicas->ended(call.current, ReplicaEnd::kCancelled, call.sent_at,
                                            now_);
}

// A replica has fallen silent: its requests go elsewhere, as far as they may.
void World::rescue_from(Service& service, std::uint32_t replica) {
  std::vector<std::uint32_t> stuck;
  for (std::uint32_t at = service.running.first; at != kNoAttempt; at = attempts_[at].next) {
    const ReplicaCall& call = attempts_[at].replica;
    const bool racing = attempts_[at].race != kNoAttempt;
    if (racing || (call.in_flight && call.current == replica)) stuck.push_back(at);
  }
  for (const std::uint32_t at : stuck) {
    Attempt& parent = attempts_[at];
    if (parent.race != kNoAttempt) {
      rescue_in_race(parent, replica);
      continue;
    }
    if (!service.replicas->other_open(parent.replica.tried_ones())) continue;
    const auto wait = wait_to_resend(parent, ReplicaEnd::kCancelled);
    if (!wait) continue;
    abandon_child(parent);
    resend(parent, *wait);
  }
}

void World::tick_replicas(Service& service) {
  ReplicaPool& pool = *service.replicas;
  ServiceTotals& totals = recorder_.service(service.index);
  if (service.controller) pool.set_limit(totals.limit_end);
  const auto alive = [this, &service](std::uint32_t i) {
    const Service& replica = services_[service.spec->calls[i].to];
    return now_ >= replica.paused_until && now_ >= replica.down_until;
  };
  const std::span<const std::uint32_t> silent = pool.tick(now_, alive);
  for (const std::uint32_t replica : std::vector(silent.begin(), silent.end())) {
    rescue_from(service, replica);
  }
  totals.ejections += pool.counts().ejections - service.replicas_seen.ejections;
  totals.suspicions += pool.counts().suspicions - service.replicas_seen.suspicions;
  service.replicas_seen = pool.counts();
  if (service.reads) service.reads->tick(now_);
  collect_ready();
  if (now_ < end_) schedule(now_ + ReplicaPool::kTickEvery, Kind::kReplicaTick, service.index);
}

}  // namespace weir::inline v0::sim
