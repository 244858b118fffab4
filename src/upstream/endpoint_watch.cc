#include "endpoint_watch.h"

#include <algorithm>

#include "policy/silence.h"

namespace weir::inline v0::upstream {
namespace {

constexpr policy::SilenceRules kSilenceRules;
constexpr policy::LatencyEjectionRules kLatencyRules;

/// Of the loops that are in time: a late one has not read what the endpoint sent.
struct Unanswered {
  TimePoint oldest{};  // zero: none
  bool of_late_loop = false;
};

Unanswered unanswered(const Upstream& upstream, Endpoint& endpoint, TimePoint now) noexcept {
  std::int64_t oldest = 0;
  Unanswered found;
  for (std::uint32_t i = 0; i < endpoint.loops(); ++i) {
    const std::int64_t at =
        endpoint.counters(i).oldest_unanswered_ns.load(std::memory_order_relaxed);
    if (at == 0) continue;
    if (upstream.is_late(i, now)) {
      found.of_late_loop = true;
    } else if (oldest == 0 || at < oldest) {
      oldest = at;
    }
  }
  found.oldest = time_from_ns(oldest);
  return found;
}

/// Suspect, and nothing is left that it could answer: its requests have moved, or were given up. No
/// byte will end the suspicion, so it counts as an unanswered probe: a hang gets a trial.
bool unheard_suspect(const Endpoint& endpoint, TimePoint now) noexcept {
  if (endpoint.openness() != policy::Openness::kLastResort) return false;
  const policy::EndpointHealth health = endpoint.health();
  return health.state() == policy::EndpointState::kSuspect &&
         now - health.since() > kSilenceRules.probe_timeout;
}

}  // namespace

void EndpointWatch::tick(TimePoint now, Duration lateness) {
  // A late loop has not read yet what the endpoints sent.
  if (lateness > kLate) late_until_ = now + kTick;
  const std::shared_ptr<const EndpointSet> set = upstream_.endpoints();
  for (const EndpointSet::Member& member : set->members) {
    const Endpoint& endpoint = *member.endpoint;
    const bool well = endpoint.quiet() && endpoint.openness() == policy::Openness::kOpen;
    if (!well || endpoint.returning()) {
      upstream_.note_health(*member.endpoint, policy::HealthEvent::kTick, now);
    }
  }
  judge_silence(*set, now, now < late_until_);
  if (now >= window_ends_) {
    if (window_ends_ != TimePoint{}) close_window(*set, now);
    window_ends_ = now + kWindow;
  }
  if (now >= reads_due_) {
    judge_reads(*set, now);
    reads_due_ = now + kHedgeEvery;
  }
  publish(*set, now);
}

/// What the latencies of reads say about all endpoints together, class by class.
void EndpointWatch::judge_reads(const EndpointSet& set, TimePoint now) {
  const policy::HedgeConfig config = upstream_.hedge();
  if (!config.enabled) return;
  for (std::uint32_t i = 0; i < upstream_.read_classes(); ++i) {
    const auto of = static_cast<ReadClass>(i);
    members_.clear();
    for (const EndpointSet::Member& member : set.members) {
      ReadLatency& reads = member.endpoint->reads(of);
      const control::LatencyReading reading = reads.tracker.reading(now);
      reads.set_median(reading.known() ? reading.median : Duration(0));
      if (reading.known()) {
        members_.push_back({.delay = reading.delay.delay, .median = reading.median});
      }
    }
    upstream_.publish(of, policy::judge_cohort(members_, upstream_.hedge_cohort(of), config));
  }
}

void EndpointWatch::judge_silence(const EndpointSet& set, TimePoint now, bool late) {
  // The two that were heard last: for each endpoint, one of them is another one.
  TimePoint first{};
  TimePoint second{};
  const Endpoint* heard_last = nullptr;
  for (const EndpointSet::Member& member : set.members) {
    const TimePoint at = member.endpoint->last_heard();
    if (at > first) {
      second = std::exchange(first, at);
      heard_last = member.endpoint.get();
    } else if (at > second) {
      second = at;
    }
  }
  for (const EndpointSet::Member& member : set.members) {
    Endpoint& endpoint = *member.endpoint;
    const Unanswered waiting = unanswered(upstream_, endpoint, now);
    const bool nobody_waits = waiting.oldest == TimePoint{} && !waiting.of_late_loop;
    if (nobody_waits && !late && unheard_suspect(endpoint, now)) {
      upstream_.note_health(endpoint, policy::HealthEvent::kHung, now);
      continue;
    }
    const policy::SilenceVerdict verdict =
        policy::judge_silence({.last_heard = endpoint.last_heard(),
                               .oldest_unanswered = waiting.oldest,
                               .others_heard = &endpoint == heard_last ? second : first,
                               .probe_sent = {},
                               .cohort_p99 = latency_.p99,
                               .loop_late = late},
                              kSilenceRules, now);
    if (verdict == policy::SilenceVerdict::kHeard) continue;
    upstream_.note_health(endpoint,
                          verdict == policy::SilenceVerdict::kSuspect
                              ? policy::HealthEvent::kSuspected
                              : policy::HealthEvent::kHung,
                          now);
  }
}

void EndpointWatch::close_window(const EndpointSet& set, TimePoint now) {
  const std::size_t n = set.members.size();
  windows_.assign(n, {});
  history_.assign(n, {});
  scratch_.assign(n, {});
  for (auto& [endpoint, seen] : seen_) seen.present = false;
  LatencyCounts::Reading all{};
  for (std::size_t i = 0; i < n; ++i) {
    Endpoint& endpoint = *set.members[i].endpoint;
    LatencyCounts::Reading counts{};
    for (std::uint32_t loop = 0; loop < endpoint.loops(); ++loop) {
      endpoint.counters(loop).latency.read(counts);
    }
    Seen& seen = seen_[&endpoint];
    seen.endpoint = set.members[i].endpoint;
    const LatencyCounts::Reading window = difference(counts, seen.counts);
    for (std::size_t k = 0; k < all.size(); ++k) all[k] += window[k];
    const LatencySummary summary = summarize(window);
    if (summary.samples > 0) endpoint.set_recent_latency(summary);
    windows_[i] = {.samples = summary.samples, .p50 = summary.p50};
    history_[i] = seen.slow;
    seen.counts = counts;
    seen.present = true;
  }
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.present; });
  const LatencySummary cohort = summarize(all);
  if (cohort.samples > 0) latency_ = {.median = cohort.p50, .p99 = cohort.p99};

  policy::close_latency_window(windows_, history_, scratch_, kLatencyRules);
  policy::EjectionCounts counts;
  for (const EndpointSet::Member& member : set.members) {
    const policy::EndpointHealth health = member.endpoint->health();
    if (health.state() == policy::EndpointState::kDraining) continue;
    ++counts.endpoints;
    counts.available += member.endpoint->open() ? 1 : 0U;
    counts.ejected_by_latency += health.state() == policy::EndpointState::kEjected &&
                                         health.reason() == policy::HealthReason::kSlow
                                     ? 1U
                                     : 0U;
  }
  for (std::size_t i = 0; i < n; ++i) {
    Endpoint& endpoint = *set.members[i].endpoint;
    seen_[&endpoint].slow = history_[i];
    if (!history_[i].outlier() || !endpoint.open()) continue;
    if (!policy::may_eject_slow(counts, kLatencyRules)) continue;
    upstream_.note_health(endpoint, policy::HealthEvent::kTooSlow, now);
    ++counts.ejected_by_latency;
    --counts.available;
  }
}

void EndpointWatch::publish(const EndpointSet& set, TimePoint now) {
  Upstream::Published sums{.cohort = {}, .latency = latency_};
  policy::Cohort& cohort = sums.cohort;
  for (const EndpointSet::Member& member : set.members) {
    const Endpoint& endpoint = *member.endpoint;
    const policy::Openness openness = endpoint.openness();
    if (openness == policy::Openness::kClosed &&
        endpoint.health().state() == policy::EndpointState::kDraining) {
      continue;
    }
    ++cohort.endpoints;
    if (openness > policy::Openness::kTrial) continue;
    ++cohort.open;
    cohort.returning += endpoint.returning() ? 1 : 0U;
    cohort.overflowing += endpoint.queue_state() >= policy::OutgoingState::kOverflow ? 1 : 0U;
  }
  const bool ramps = policy::ramp_applies(cohort);
  cohort.weight_max = 0;
  for (const EndpointSet::Member& member : set.members) {
    if (!member.endpoint->open()) continue;
    const double weight = member.weight * (ramps ? member.endpoint->return_ratio(now) : 1.0);
    cohort.open_weight += weight;
    cohort.weight_max = std::max(cohort.weight_max, weight);
  }
  if (cohort.weight_max <= 0) cohort.weight_max = 1;
  upstream_.publish(sums);
}

}  // namespace weir::inline v0::upstream
