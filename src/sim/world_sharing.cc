#include <algorithm>

#include "world.h"

// Services that divide their workers' time among all requests.

namespace weir::inline v0::sim {

void World::share(Service& service, Attempt& attempt, Duration work) {
  reshare(service);  // the new one takes part from now on
  ++attempt.token;
  service.processor.add(attempt.index, attempt.token, work);
  schedule_shared(service);
}

// Call after the number of requests, the workers or a pause changed.
void World::reshare(Service& service) {
  if (!service.spec->sharing) return;
  const bool stopped = now_ < service.paused_until || now_ < service.down_until;
  const double units = std::max(service.busy, 1U);
  service.processor.set_speed(now_, stopped ? 0 : std::min(1.0, service.workers / units));
  schedule_shared(service);
}

void World::schedule_shared(Service& service) {
  ProcessorSharing& processor = service.processor;
  while (!processor.empty() &&
         attempts_[processor.next().attempt].token != processor.next().token) {
    processor.pop();
  }
  if (processor.empty()) return;
  const TimePoint next = processor.next_end();
  if (next == TimePoint::max()) return;
  schedule(next, Kind::kShared, service.index, ++service.shared_token);
}

void World::served_shared(Service& service) {
  reshare(service);
  while (!service.processor.empty()) {
    const ProcessorSharing::Job job = service.processor.next();
    Attempt& attempt = attempts_[job.attempt];
    const bool removed = attempt.token != job.token;
    if (!removed && !service.processor.next_has_ended()) break;
    service.processor.pop();
    if (removed) continue;
    attempt.paused_before = service.paused_total;  // pauses have stopped the progress already
    served(attempt);
  }
  reshare(service);
}

}  // namespace weir::inline v0::sim
