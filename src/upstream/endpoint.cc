#include "upstream/endpoint.h"

#include <algorithm>
#include <utility>

namespace weir::inline v0::upstream {
namespace {

std::uint32_t next_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool is_silence(policy::EndpointState state) noexcept {
  return state == policy::EndpointState::kSuspect || state == policy::EndpointState::kHung;
}

}  // namespace

Endpoint::Endpoint(Identity identity, std::uint32_t loops, const policy::EndpointHealth& health,
                   const policy::RedundancyBudgetRules& budget, const Outgoing& outgoing, Rng rng)
    : identity_(std::move(identity)),
      label_(identity_.name.to_string()),
      number_(next_number()),
      loops_(loops),
      counters_(std::make_unique<EndpointCounters[]>(loops)),
      budget_(budget),
      reads_(std::make_unique<ReadLatency[]>(identity_.read_classes)),
      health_(health),
      rng_(rng) {
  for (std::uint32_t i = 0; i < loops; ++i) {
    queues_.emplace_back(outgoing.config, queued_, outgoing.totals);
  }
  publish();
}

std::optional<policy::HealthChange> Endpoint::note(policy::HealthEvent event, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  const std::optional<policy::HealthChange> change =
      health_.apply(event, now, identity_.rules, rng_);
  if (change && is_silence(change->from) && !is_silence(change->to)) {
    suspicion_ended_ns_.store(to_ns(now), std::memory_order_relaxed);
  }
  publish();
  return change;
}

// Under the lock.
void Endpoint::publish() noexcept {
  openness_.store(health_.openness(), std::memory_order_relaxed);
  quiet_.store(health_.quiet(), std::memory_order_relaxed);
  // Only a ramp that does not run yet is still below 1 at the end of time.
  on_trial_.store(health_.return_ratio(TimePoint::max(), identity_.rules) < 1,
                  std::memory_order_relaxed);
  ramp_began_ns_.store(to_ns(health_.ramp_began()), std::memory_order_relaxed);
  ramp_ends_ns_.store(to_ns(health_.ramp_ends()), std::memory_order_relaxed);
}

policy::EndpointHealth Endpoint::health() const {
  const std::scoped_lock lock(mutex_);
  return health_;
}

ReadClass Endpoint::busiest_reads(TimePoint now) noexcept {
  std::uint32_t busiest = 0;
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < read_classes(); ++i) {
    const std::uint64_t samples = reads_[i].tracker.reading(now).samples;
    if (samples > most) busiest = i;
    most = std::max(most, samples);
  }
  return static_cast<ReadClass>(busiest);
}

control::OutgoingStats Endpoint::queue_stats() const noexcept {
  control::OutgoingStats all;
  for (const control::OutgoingQueue& queue : queues_) all += queue.stats();
  return all;
}

LatencySummary Endpoint::recent_latency() const {
  const std::scoped_lock lock(mutex_);
  return recent_;
}

void Endpoint::set_recent_latency(const LatencySummary& summary) {
  const std::scoped_lock lock(mutex_);
  recent_ = summary;
}

double Endpoint::return_ratio(TimePoint now) const noexcept {
  const std::int64_t began = ramp_began_ns_.load(std::memory_order_relaxed);
  const std::int64_t ends = ramp_ends_ns_.load(std::memory_order_relaxed);
  const double start = identity_.rules.ramp_start;
  if (on_trial_.load(std::memory_order_relaxed)) return start;
  if (ends == 0 || to_ns(now) >= ends) return 1;
  const double done = static_cast<double>(to_ns(now) - began) / static_cast<double>(ends - began);
  return std::clamp(done, start, 1.0);
}

TimePoint Endpoint::suspected_until(TimePoint now) const noexcept {
  if (openness() == policy::Openness::kLastResort) return now;
  return time_from_ns(suspicion_ended_ns_.load(std::memory_order_relaxed));
}

}  // namespace weir::inline v0::upstream
