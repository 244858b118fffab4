#include "service_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace weir::inline v0::sim {
namespace {

using policy::RecordedDecision;

constexpr std::size_t kSlicesMax = 200;
constexpr std::size_t kPerSlice = 40;     // answers that make a mean worth something
constexpr std::size_t kValuesMax = 2000;  // of the distribution
constexpr double kQuietShare = 0.2;       // of the slices, those with least in flight
constexpr double kSaturated = 1.25;       // latency over that of quiet slices

/// A part of the window: what was in flight on average, and what was answered.
struct Slice {
  double in_flight = 0;  // by Little's law: the time spent in the service / the length
  double answered = 0;
  std::vector<Duration> latencies{};

  [[nodiscard]] double mean_latency() const noexcept {
    double sum = 0;
    for (const Duration one : latencies) sum += static_cast<double>(one.count());
    return latencies.empty() ? 0 : sum / static_cast<double>(latencies.size());
  }
};

bool was_served(const RecordedDecision& one) noexcept {
  return !one.refused() && one.latency > Duration(0);
}

/// Adds the time that a request spent in the service to each slice that it was in.
void add_time(std::vector<Slice>& slices, Duration begin, Duration end, Duration width) {
  const auto last = static_cast<std::int64_t>(slices.size()) - 1;
  const std::int64_t first = std::max<std::int64_t>(0, begin / width);
  for (std::int64_t i = first; i <= std::min(last, end / width); ++i) {
    const Duration from = std::max(begin, width * i);
    const Duration to = std::min(end, width * (i + 1));
    if (to > from) {
      slices[static_cast<std::size_t>(i)].in_flight +=
          static_cast<double>((to - from).count()) / static_cast<double>(width.count());
    }
  }
}

std::vector<Slice> slices_of(const RecordedLoad& load) {
  const auto served = static_cast<std::size_t>(
      std::count_if(load.decisions.begin(), load.decisions.end(), was_served));
  const std::size_t count = std::clamp<std::size_t>(served / (2 * kPerSlice), 1, kSlicesMax);
  std::vector<Slice> slices(count);
  const Duration width =
      std::max(Duration(1), load.length() / static_cast<std::int64_t>(count) + Duration(1));
  for (const RecordedDecision& one : load.decisions) {
    if (!was_served(one)) continue;
    const Duration begin = one.at + one.wait - load.from;
    const Duration end = begin + one.latency;
    add_time(slices, begin, end, width);
    const auto ended = static_cast<std::size_t>(std::max<std::int64_t>(0, end / width));
    if (ended < count) slices[ended].answered += 1 / to_seconds(width);
    const auto began = static_cast<std::size_t>(std::max<std::int64_t>(0, begin / width));
    if (began < count && one.end == policy::DecisionEnd::kOk) {
      slices[began].latencies.push_back(one.latency);
    }
  }
  std::erase_if(slices, [](const Slice& slice) { return slice.latencies.size() < kPerSlice / 2; });
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.in_flight < b.in_flight; });
  return slices;
}

/// The values at even shares of all, so that the tail is kept.
std::vector<Duration> thinned(std::vector<Duration> values) {
  std::sort(values.begin(), values.end());
  if (values.size() <= kValuesMax) return values;
  std::vector<Duration> kept;
  kept.reserve(kValuesMax);
  for (std::size_t i = 0; i < kValuesMax; ++i) {
    kept.push_back(values[(2 * i + 1) * values.size() / (2 * kValuesMax)]);
  }
  return kept;
}

double mean_drain(const std::vector<Slice>& slices, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < slices.size(); ++i) sum += slices[i].answered;
  return sum / static_cast<double>(slices.size() - from);
}

}  // namespace

ServiceFit fit_service(const RecordedLoad& load) {
  ServiceFit fit;
  const std::vector<Slice> slices = slices_of(load);
  if (slices.empty()) return fit;
  const auto share = [&](double of) {
    return std::max<std::size_t>(1,
                                 static_cast<std::size_t>(of * static_cast<double>(slices.size())));
  };
  std::vector<Duration> quiet;
  for (std::size_t i = 0; i < share(kQuietShare); ++i) {
    quiet.insert(quiet.end(), slices[i].latencies.begin(), slices[i].latencies.end());
  }
  fit.samples = quiet.size();
  double sum = 0;
  for (const Duration one : quiet) sum += static_cast<double>(one.count());
  fit.mean = Duration(std::llround(sum / static_cast<double>(quiet.size())));
  fit.time.kind = DistributionKind::kEmpirical;
  fit.time.values = thinned(std::move(quiet));
  const Slice& busiest = slices.back();
  double crowded = 0;
  const std::size_t busy = slices.size() - share(kQuietShare);
  for (std::size_t i = busy; i < slices.size(); ++i) {
    crowded += slices[i].mean_latency() / static_cast<double>(slices.size() - busy);
  }
  fit.drain_max = mean_drain(slices, busy);
  fit.saturated = slices.size() > 1 && crowded > kSaturated * static_cast<double>(fit.mean.count());
  const double workers =
      fit.saturated ? fit.drain_max * to_seconds(fit.mean) : std::ceil(busiest.in_flight);
  fit.workers = static_cast<std::uint32_t>(std::clamp(std::round(workers), 1.0, 1e6));
  return fit;
}

}  // namespace weir::inline v0::sim
