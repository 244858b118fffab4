#include <algorithm>
#include <optional>

#include "world.h"

// Faults of services: pauses, slowness, crashes, errors, memory; and their periodic events.

namespace weir::inline v0::sim {
constexpr Duration kTickEvery = std::chrono::milliseconds(50);
constexpr std::uint32_t kTicksPerMemoryRead = 10;

// A loop that was stalled runs its timers first, then reads what has arrived; the health of the
// replicas is judged afterwards. So each of these kinds comes a nanosecond after the one before.
std::optional<TimePoint> World::after_stall(const SimEvent& event) const {
  const auto kind = static_cast<Kind>(event.kind);
  const auto until = [this](std::uint32_t service, int turn) -> std::optional<TimePoint> {
    const TimePoint end = services_[service].stalled_until;
    return now_ < end ? std::optional(end + Duration(turn)) : std::nullopt;
  };
  if (kind == Kind::kReplicaTick) return until(event.subject, 2);
  const bool timer = kind == Kind::kHedgeDue || kind == Kind::kReplicaRetry;
  if (!timer && kind != Kind::kReach && kind != Kind::kAnswered) return std::nullopt;
  const Attempt& attempt = attempts_[event.subject];
  if (attempt.token != event.token) return std::nullopt;  // cancelled
  if (timer) return until(attempt.service, 0);
  if (kind == Kind::kReach) return until(attempt.service, 1);
  if (attempt.parent == kNoAttempt) return std::nullopt;
  return until(attempts_[attempt.parent].service, 1);
}

void World::begin_fault(Service& service, std::uint32_t index) {
  const FaultSpec& fault = service.spec->faults[index];
  service.active[index] = true;
  if (fault.every.count() > 0) schedule(now_ + fault.every, Kind::kFault, service.index, index);
  if (fault.lasts.count() > 0) {
    schedule(now_ + fault.lasts, Kind::kFaultEnd, service.index, index);
  }
  switch (fault.kind) {
    case FaultKind::kPause:
      service.paused_until = std::max(service.paused_until, now_ + fault.lasts);
      service.paused_total += fault.lasts;
      break;
    case FaultKind::kCrash:
      crash(service, fault.lasts);
      break;
    case FaultKind::kWorkers:
      service.workers = fault.workers;
      pull(service);
      break;
    case FaultKind::kSlow:
    case FaultKind::kErrors:
    case FaultKind::kAbsent:
      refresh_faults(service);
      break;
    case FaultKind::kStall:
      service.stalled_until = now_ + fault.lasts;
      break;
    case FaultKind::kGateways:
      refresh_gateways(service);
      break;
    case FaultKind::kBaseline:
      break;
  }
  reshare(service);
}

void World::end_fault(Service& service, std::uint32_t index) {
  service.active[index] = false;
  refresh_faults(service);
  refresh_gateways(service);
  pull(service);
  reshare(service);
}

void World::refresh_faults(Service& service) {
  service.slow = 1;
  service.error_share = service.absent_share = 0;
  for (std::size_t i = 0; i < service.active.size(); ++i) {
    if (!service.active[i]) continue;
    const FaultSpec& fault = service.spec->faults[i];
    if (fault.kind == FaultKind::kSlow) service.slow *= fault.factor;
    if (fault.kind == FaultKind::kErrors) {
      service.error_share = std::max(service.error_share, fault.factor);
      service.error_time = fault.time;
    }
    if (fault.kind == FaultKind::kAbsent) {
      service.absent_share = std::max(service.absent_share, fault.factor);
    }
  }
}

// Everything inside fails at once; connections of requests admitted from now on are refused.
void World::crash(Service& service, Duration lasts) {
  ++recorder_.service(service.index).crashes;
  service.down_until = std::max(service.down_until, now_ + lasts);
  while (service.queue.size > 0) {
    complete(attempts_[service.queue.first], Outcome::kError, CallEnd::kFailed);
  }
  while (service.running.size > 0) {
    Attempt& attempt = attempts_[service.running.first];
    if (attempt.state == AttemptState::kCalling) abandon_child(attempt);
    complete(attempt, Outcome::kError, CallEnd::kFailed);
  }
}

double World::memory_of(const Service& service) const noexcept {
  const MemorySpec& memory = *service.spec->memory;
  return interpolate(memory.used, now_.time_since_epoch()) +
         memory.per_request * static_cast<double>(service.inside);
}

void World::tick(Service& service) {
  if (service.spec->memory) {
    const double usage = memory_of(service);
    ServiceTotals& totals = recorder_.service(service.index);
    totals.memory_end = usage;
    totals.memory_max = std::max(totals.memory_max, usage);
    if (usage >= 1 && now_ >= service.down_until) crash(service, service.spec->memory->restart);
    if (service.controller && service.ticks++ % kTicksPerMemoryRead == 0) {
      service.controller->set_memory(std::min(1.0, usage), true);
    }
  }
  if (service.controller) {
    service.controller->expire(now_);
    collect_ready();
  }
  if (now_ < end_) schedule(now_ + kTickEvery, Kind::kTick, service.index);
}

void World::expire(Service& service) {
  service.next_expire = TimePoint::max();
  service.controller->expire(now_);
  collect_ready();
  const TimePoint next = service.controller->next_expiry();
  if (next == TimePoint::max() || next >= service.next_expire) return;
  service.next_expire = next;
  schedule(std::max(next, now_ + Duration(1)), Kind::kExpire, service.index);
}

}  // namespace weir::inline v0::sim
