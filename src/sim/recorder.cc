#include "recorder.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::sim {

void CallTotals::merge(const CallTotals& other) noexcept {
  offered += other.offered;
  attempts += other.attempts;
  arrived += other.arrived;
  refused += other.refused;
  absent += other.absent;
  for (std::size_t i = 0; i < kCallEndCount; ++i) ended[i] += other.ended[i];
  latency.merge(other.latency);
}

void CallTotals::clear() noexcept {
  offered = attempts = arrived = refused = absent = 0;
  ended = {};
  latency.clear();
}

void HedgeTotals::merge(const HedgeTotals& later) noexcept {
  sent += later.sent;
  won += later.won;
  lost += later.lost;
  failed += later.failed;
  for (std::size_t i = 0; i < not_sent.size(); ++i) not_sent[i] += later.not_sent[i];
}

void MessageTotals::merge(const MessageTotals& later) noexcept {
  offered += later.offered;
  dropped += later.dropped;
  refused += later.refused;
  expired += later.expired;
  queued_max = std::max(queued_max, later.queued_max);
}

void ServiceTotals::merge(const ServiceTotals& later) noexcept {
  for (std::size_t i = 0; i < kReasonCount; ++i) refused[i] += later.refused[i];
  completed += later.completed;
  dispatched += later.dispatched;
  replica_tries += later.replica_tries;
  hedges.merge(later.hedges);
  messages.merge(later.messages);
  ejections += later.ejections;
  suspicions += later.suspicions;
  crashes += later.crashes;
  busy_ns += later.busy_ns;
  wasted_ns += later.wasted_ns;
  limit_min = limit_min == 0 ? later.limit_min : std::min(limit_min, later.limit_min);
  limit_max = std::max(limit_max, later.limit_max);
  limit_end = later.limit_end;
  in_flight_max = std::max(in_flight_max, later.in_flight_max);
  in_flight_end = later.in_flight_end;
  queue_max = std::max(queue_max, later.queue_max);
  waiting_end = later.waiting_end;
  memory_max = std::max(memory_max, later.memory_max);
  memory_end = later.memory_end;
  dispatch.merge(later.dispatch);
  queue.merge(later.queue);
  wait.merge(later.wait);
  refusal.merge(later.refusal);
  baseline_ms = later.baseline_ms;
}

void ServiceTotals::clear() noexcept {
  refused = {};
  completed = crashes = 0;
  dispatched = replica_tries = ejections = suspicions = 0;
  hedges = {};
  messages = {};
  busy_ns = wasted_ns = 0;
  limit_min = limit_max = limit_end;
  in_flight_max = in_flight_end;
  queue_max = 0;
  memory_max = memory_end;
  dispatch.clear();
  queue.clear();
  wait.clear();
  refusal.clear();
}

Recorder::Recorder(const Scenario& scenario, std::vector<Cohort> cohorts)
    : cohorts_(std::move(cohorts)),
      bucket_(scenario.bucket_width()),
      buckets_max_(static_cast<std::size_t>((scenario.duration + bucket_ - Duration(1)) / bucket_)),
      calls_(cohorts_.size()),
      services_(scenario.services.size()),
      causes_(scenario.services.size()) {
  series_.reserve(buckets_max_);
  add_span({scenario.settle, scenario.duration});
  for (const VerdictSpec& verdict : scenario.verdicts) {
    if (verdict.measure != Measure::kDiagnosed) add_span({verdict.from, verdict.to});
  }
  for (const PhaseSpec& phase : scenario.phases) add_span({phase.from, phase.to});
}

void Recorder::add_span(const Span& span) {
  for (const SpanTotals& known : spans_) {
    if (known.span == span) return;
  }
  spans_.push_back(
      {span, std::vector<CallTotals>(calls_.size()), std::vector<ServiceTotals>(services_.size())});
}

const SpanTotals& Recorder::span(const Span& which) const {
  const auto found = std::find_if(spans_.begin(), spans_.end(),
                                  [&](const SpanTotals& s) { return s.span == which; });
  WEIR_ASSERT(found != spans_.end());
  return *found;
}

void Recorder::close_bucket() {
  if (series_.size() < buckets_max_) {
    const Duration middle = bucket_ * static_cast<std::int64_t>(series_.size()) + bucket_ / 2;
    SeriesPoint point;
    LatencyHistogram all;
    for (const CallTotals& c : calls_) {
      point.calls.push_back({static_cast<std::uint32_t>(c.offered),
                             static_cast<std::uint32_t>(c.ok()),
                             static_cast<std::uint32_t>(c.refused)});
      all.merge(c.latency);
    }
    for (const ServiceTotals& s : services_) {
      point.services.push_back({s.limit_end, s.in_flight_end, s.queue_max, s.memory_max,
                                static_cast<float>(to_millis(s.dispatch.quantile(0.5))),
                                static_cast<float>(to_millis(s.wait.mean())), s.baseline_ms});
    }
    point.p50_ms = static_cast<float>(to_millis(all.quantile(0.5)));
    point.p90_ms = static_cast<float>(to_millis(all.quantile(0.9)));
    point.p99_ms = static_cast<float>(to_millis(all.quantile(0.99)));
    series_.push_back(std::move(point));
    for (SpanTotals& span : spans_) {
      if (middle < span.span.from || middle >= span.span.to) continue;
      for (std::size_t i = 0; i < calls_.size(); ++i) span.calls[i].merge(calls_[i]);
      for (std::size_t i = 0; i < services_.size(); ++i) span.services[i].merge(services_[i]);
    }
  }
  for (CallTotals& c : calls_) c.clear();
  for (ServiceTotals& s : services_) s.clear();
}

}  // namespace weir::inline v0::sim
