#include "sample_window.h"

#include <algorithm>

#include "memory_orders.h"

namespace weir::inline v0::inline control {

void SampleWindow::set_rules(const WindowRules& rules) noexcept {
  duration_ns_.store(rules.duration.count(), kRelaxed);
  duration_min_ns_.store(std::min(rules.duration_min, rules.duration).count(), kRelaxed);
  early_samples_.store(rules.early_close_samples, kRelaxed);
}

bool SampleWindow::is_due(TimePoint now) const noexcept {
  const std::int64_t opened = opened_ns_.load(kRelaxed);
  if (opened == 0) return true;  // the first check opens the first window
  const std::int64_t age = to_ns(now) - opened;
  if (age >= duration_ns_.load(kRelaxed)) return true;
  const std::uint32_t early = early_samples_.load(kRelaxed);
  if (early == 0 || age < duration_min_ns_.load(kRelaxed)) return false;
  const std::uint64_t samples = counters_.sum(&ScopeCounters::samples);
  return samples - samples_at_open_.load(kRelaxed) >= early;
}

SampleWindow::Totals SampleWindow::read() const noexcept {
  Totals totals;
  totals.samples = counters_.sum(&ScopeCounters::samples);
  totals.latency_ns = counters_.sum(&ScopeCounters::latency_ns);
  totals.abandoned = counters_.sum(&ScopeCounters::abandoned);
  totals.overloads = counters_.sum(&ScopeCounters::overloads);
  totals.limit_hits = counters_.sum(&ScopeCounters::limit_hits);
  counters_.sum_histogram(totals.histogram);
  return totals;
}

LimitSample SampleWindow::close(TimePoint now, std::uint32_t in_flight) noexcept {
  const Totals totals = read();
  std::array<std::uint32_t, LatencyBuckets::kCount> counts{};
  std::uint64_t counted = 0;
  std::size_t lowest = LatencyBuckets::kCount;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = totals.histogram[i] - at_open_.histogram[i];  // modulo 2^32, as intended
    counted += counts[i];
    if (counts[i] != 0 && lowest == LatencyBuckets::kCount) lowest = i;
  }
  const std::uint64_t samples = totals.samples - at_open_.samples;
  LimitSample sample;
  sample.opened_at = time_from_ns(opened_ns_.load(kRelaxed));
  sample.closed_at = now;
  sample.sample_count = static_cast<std::uint32_t>(samples);
  sample.abandoned_count = static_cast<std::uint32_t>(totals.abandoned - at_open_.abandoned);
  if (samples > 0) {
    const std::uint64_t sum = totals.latency_ns - at_open_.latency_ns;
    sample.latency_avg = Duration(static_cast<std::int64_t>(sum / samples));
  }
  if (counted > 0) {
    sample.latency_min = LatencyBuckets::value(lowest);
    sample.latency_p10 = percentile(counts, counted, 0.10);
    sample.latency_p50 = percentile(counts, counted, 0.50);
    sample.latency_p90 = percentile(counts, counted, 0.90);
  }
  sample.in_flight = in_flight;
  sample.in_flight_max = std::max(in_flight_max_.exchange(in_flight, kRelaxed), in_flight);
  sample.overload_count = static_cast<std::uint32_t>(totals.overloads - at_open_.overloads);
  sample.refused_count = static_cast<std::uint32_t>(totals.limit_hits - at_open_.limit_hits);
  at_open_ = totals;
  samples_at_open_.store(totals.samples, kRelaxed);
  opened_ns_.store(std::max<std::int64_t>(to_ns(now), 1), kRelaxed);
  return sample;
}

}  // namespace weir::inline v0::inline control
