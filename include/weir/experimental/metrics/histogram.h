#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/assert.h"

namespace weir::inline v0::metrics {

/// The values of a histogram, in the form that the text writer takes.
/// counts[i] is the number of observations v with bounds[i-1] < v <= bounds[i]; the last one counts
/// those above every bound. Not cumulative: the writer accumulates.
struct HistogramView {
  std::span<const double> bounds;         // strictly ascending, finite
  std::span<const std::uint64_t> counts;  // bounds.size() + 1
  double sum = 0;
};

inline constexpr std::size_t kHistogramBoundsMax = 24;

/// A copy of a histogram's counters; view() points into it.
struct HistogramSnapshot {
  std::array<double, kHistogramBoundsMax> bounds{};
  std::array<std::uint64_t, kHistogramBoundsMax + 1> counts{};
  std::size_t bound_count = 0;
  double sum = 0;

  [[nodiscard]] HistogramView view() const noexcept {
    return {std::span(bounds).first(bound_count), std::span(counts).first(bound_count + 1), sum};
  }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i <= bound_count; ++i) total += counts[i];
    return total;
  }
  /// Adds another histogram with the same bounds, e.g. that of another loop.
  void merge(const HistogramSnapshot& other) noexcept {
    WEIR_ASSERT(bound_count == other.bound_count && bounds == other.bounds);
    for (std::size_t i = 0; i <= bound_count; ++i) counts[i] += other.counts[i];
    sum += other.sum;
  }
};

/// Counts observations in fixed buckets.
///
/// Promises: a NaN is ignored; every other value is counted in exactly one bucket; the reported
/// count is the sum of the buckets, so count and buckets agree even while other threads observe.
/// Thread-safety: observe and snapshot from any thread; keep a frequently used histogram per loop
/// and merge at the scrape. Cost: a binary search and two relaxed atomic adds; no allocation.
class Histogram {
 public:
  /// `bounds` is copied: strictly ascending, finite, at most kHistogramBoundsMax.
  explicit Histogram(std::span<const double> bounds) noexcept : bound_count_(bounds.size()) {
    WEIR_ASSERT(bounds.size() <= kHistogramBoundsMax);
    std::copy(bounds.begin(), bounds.end(), bounds_.begin());
    for (std::size_t i = 1; i < bound_count_; ++i) WEIR_ASSERT(bounds_[i - 1] < bounds_[i]);
  }

  void observe(double value) noexcept {
    if (value != value) return;
    const auto end = bounds_.begin() + static_cast<std::ptrdiff_t>(bound_count_);
    const auto at = std::lower_bound(bounds_.begin(), end, value) - bounds_.begin();
    counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  [[nodiscard]] HistogramSnapshot snapshot() const noexcept {
    HistogramSnapshot copy;
    copy.bounds = bounds_;
    copy.bound_count = bound_count_;
    for (std::size_t i = 0; i <= bound_count_; ++i) {
      copy.counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    copy.sum = sum_.load(std::memory_order_relaxed);
    return copy;
  }

 private:
  std::array<double, kHistogramBoundsMax> bounds_{};
  std::size_t bound_count_;
  std::array<std::atomic<std::uint64_t>, kHistogramBoundsMax + 1> counts_{};
  std::atomic<double> sum_{0};
};

/// Bounds for waits in milliseconds, up to the longest waiting time of a class.
inline constexpr std::array<double, 12> kWaitBoundsMs = {0.1, 0.5, 1,  2.5, 5,   10,
                                                         20,  35,  50, 75,  100, 250};

/// Bounds for request durations in seconds, 0.5 ms to 60 s.
inline constexpr std::array<double, 16> kDurationBoundsSeconds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};

}  // namespace weir::inline v0::metrics
