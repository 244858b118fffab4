#pragma once

#include <cstdint>
#include <span>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

struct LatencyEjectionRules {
  double ratio = 3;                                 // slower than this × the others' median ...
  Duration margin = std::chrono::milliseconds(20);  // ... and than that median plus this
  std::uint32_t samples_min = 20;                   // per window
  double ejected_share_max = 0.10;                  // but at least one endpoint may be ejected
  double available_share_min = 0.50;                // an ejection never goes below this
};

/// One window (1 s) of one endpoint.
struct LatencyWindow {
  std::uint32_t samples = 0;
  Duration p50{};
};

/// Which of the last three windows were slow; the newest in bit 0. Belongs to one endpoint.
struct SlowWindows {
  std::uint8_t bits = 0;
  /// Slow in 2 of 3 windows.
  [[nodiscard]] constexpr bool outlier() const noexcept {
    return bits == 0b011 || bits == 0b101 || bits == 0b110 || bits == 0b111;
  }
  bool operator==(const SlowWindows&) const = default;
};

/// Closes one window of all endpoints: adds to history[i] whether endpoint i was slow, that is
/// p50 > max(ratio × m, m + margin), where m is the median of the p50 of all *other* endpoints that
/// have samples_min samples. A window with too few samples, or without others to compare with, is
/// not slow.
///
/// If all endpoints are slow, the median is as slow, and none is marked. The median, not mean and
/// deviation: in a small set one bad endpoint raises the deviation so far that it hides itself.
///
/// The three spans have equal size; `scratch` is overwritten.
/// Thread-safety: pure. Cost: O(n log n), no allocation; once per window, not per request.
void close_latency_window(std::span<const LatencyWindow> windows, std::span<SlowWindows> history,
                          std::span<Duration> scratch, const LatencyEjectionRules& rules) noexcept;

struct EjectionCounts {
  std::uint32_t endpoints = 0;           // not draining
  std::uint32_t available = 0;           // of them
  std::uint32_t ejected_by_latency = 0;  // of them, now
};

/// Whether one more endpoint may be ejected because it is slow: at most max(1, ejected_share_max)
/// of all, and not if fewer than available_share_min would be left, or none.
/// Promises: so that an ejection cannot cascade: what others left is never taken below the half.
[[nodiscard]] bool may_eject_slow(const EjectionCounts& counts,
                                  const LatencyEjectionRules& rules) noexcept;

}  // namespace weir::inline v0::inline policy
