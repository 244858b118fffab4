#include "policy/latency_ejection.h"

#include <algorithm>
#include <cstddef>

#include "weir/base/assert.h"

namespace weir::inline v0::inline policy {
namespace {

/// The median of sorted values without the one at `left_out`: of two middle ones, the mean.
Duration median_without(std::span<const Duration> sorted, std::size_t left_out) noexcept {
  const auto at = [&](std::size_t i) { return sorted[i < left_out ? i : i + 1]; };
  const std::size_t count = sorted.size() - 1;
  const Duration low = at((count - 1) / 2);
  return low + (at(count / 2) - low) / 2;
}

bool slower_than(Duration p50, Duration others, const LatencyEjectionRules& rules) noexcept {
  const double by_ratio = rules.ratio * static_cast<double>(others.count());
  return p50 > others + rules.margin && static_cast<double>(p50.count()) > by_ratio;
}

}  // namespace

void close_latency_window(std::span<const LatencyWindow> windows, std::span<SlowWindows> history,
                          std::span<Duration> scratch, const LatencyEjectionRules& rules) noexcept {
  WEIR_ASSERT(history.size() == windows.size() && scratch.size() == windows.size());
  std::size_t known = 0;
  for (const LatencyWindow& window : windows) {
    if (window.samples >= rules.samples_min) scratch[known++] = window.p50;
  }
  const std::span<Duration> sorted = scratch.first(known);
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    bool slow = false;
    if (windows[i].samples >= rules.samples_min && known > 1) {
      const auto at = std::ranges::lower_bound(sorted, windows[i].p50) - sorted.begin();
      slow =
          slower_than(windows[i].p50, median_without(sorted, static_cast<std::size_t>(at)), rules);
    }
    const unsigned bits = (unsigned{history[i].bits} << 1U | (slow ? 1U : 0U)) & 0b111U;
    history[i].bits = static_cast<std::uint8_t>(bits);
  }
}

bool may_eject_slow(const EjectionCounts& counts, const LatencyEjectionRules& rules) noexcept {
  if (counts.available <= 1) return false;
  const double endpoints = counts.endpoints;
  const double ejected_max = std::max(1.0, rules.ejected_share_max * endpoints);
  if (counts.ejected_by_latency + 1.0 > ejected_max) return false;
  return counts.available - 1.0 >= rules.available_share_min * endpoints;
}

}  // namespace weir::inline v0::inline policy
