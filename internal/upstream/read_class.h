#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "weir/base/time.h"

#include "control/latency_tracker.h"

namespace weir::inline v0::upstream {

/// Reads whose latencies are comparable; in the gateway those of one route. A report that takes
/// 200 ms says nothing about when a lookup of 2 ms is late. An upstream has at most this many
/// classes, and further routes share the last one.
using ReadClass = std::uint8_t;
inline constexpr std::uint32_t kReadClassesMax = 8;

/// What is known of the reads of one class at one endpoint.
///
/// Thread-safety: any member, any thread.
struct ReadLatency {
  control::LatencyTracker tracker;

  /// The median of the window; zero: unknown. Published by EndpointWatch.
  [[nodiscard]] Duration median() const noexcept {
    return Duration(median_ns_.load(std::memory_order_relaxed));
  }
  void set_median(Duration median) noexcept {
    median_ns_.store(median.count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Duration::rep> median_ns_{0};
};

}  // namespace weir::inline v0::upstream
