#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::upstream {

/// A histogram of latencies with one writer: four buckets per factor of two, from 16 µs to 68 s.
///
/// Promises: counts only grow (modulo 2^32); a window is the difference of two readings.
/// Thread-safety: record() by its owner, read() from any thread. Cost: a plain load and store; 352
/// bytes. Accuracy: a bucket is at most 25 % wide.
class LatencyCounts {
 public:
  static constexpr std::size_t kBuckets = 88;
  using Reading = std::array<std::uint32_t, kBuckets>;

  void record(Duration latency) noexcept {
    std::atomic<std::uint32_t>& count = counts_[bucket_of(latency)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Adds the counts to `sum`.
  void read(Reading& sum) const noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      sum[i] += counts_[i].load(std::memory_order_relaxed);
    }
  }

  [[nodiscard]] static std::size_t bucket_of(Duration latency) noexcept {
    const auto units =
        static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0)) >> (kFirstBit - 2U);
    if (units < 4) return 0;
    const auto octave = static_cast<unsigned>(std::bit_width(units)) - 3;  // 4 … 7 is octave 0
    return std::min<std::size_t>(octave * 4U + ((units >> octave) & 3U), kBuckets - 1);
  }
  /// The middle of a bucket.
  [[nodiscard]] static Duration value_of(std::size_t bucket) noexcept {
    const auto octave = static_cast<unsigned>(bucket / 4);
    const std::uint64_t twice = (2 * (4 + bucket % 4) + 1) << octave;  // low + high
    return Duration(static_cast<std::int64_t>(twice << (kFirstBit - 3U)));
  }

 private:
  static constexpr unsigned kFirstBit = 14;  // 2^14 ns = 16 µs
  std::array<std::atomic<std::uint32_t>, kBuckets> counts_{};
};

/// Number of samples and quantiles of a reading, or of the difference of two.
struct LatencySummary {
  std::uint32_t samples = 0;
  Duration p50{};
  Duration p99{};
};

[[nodiscard]] inline LatencySummary summarize(const LatencyCounts::Reading& counts) noexcept {
  LatencySummary summary;
  for (const std::uint32_t n : counts) summary.samples += n;
  if (summary.samples == 0) return summary;
  std::uint32_t seen = 0;
  const std::uint32_t at50 = (summary.samples + 1) / 2;
  const std::uint32_t at99 = summary.samples - summary.samples / 100;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint32_t before = seen;
    seen += counts[i];
    if (before < at50 && seen >= at50) summary.p50 = LatencyCounts::value_of(i);
    if (before < at99 && seen >= at99) summary.p99 = LatencyCounts::value_of(i);
  }
  return summary;
}

/// a - b, bucket by bucket.
[[nodiscard]] inline LatencyCounts::Reading difference(const LatencyCounts::Reading& a,
                                                       const LatencyCounts::Reading& b) noexcept {
  LatencyCounts::Reading result;
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

}  // namespace weir::inline v0::upstream
