#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::inline control {

/// Buckets of a log histogram: 16 per octave from 1 µs to about 137 s, so a value is known within
/// ±3.2 %. Values outside this range go to the first or last bucket.
struct LatencyBuckets {
  static constexpr std::uint32_t kOctaveFirst = 10;  // 2^10 ns ≈ 1 µs
  static constexpr std::uint32_t kOctaves = 27;
  static constexpr std::uint32_t kPerOctave = 16;
  static constexpr std::size_t kCount = std::size_t{kOctaves} * kPerOctave;

  [[nodiscard]] static constexpr std::size_t index(Duration latency) noexcept {
    const std::int64_t ns = latency.count();
    if (ns < (std::int64_t{1} << kOctaveFirst)) return 0;
    const auto value = static_cast<std::uint64_t>(ns);
    const auto octave = static_cast<std::uint32_t>(std::bit_width(value)) - 1;
    if (octave >= kOctaveFirst + kOctaves) return kCount - 1;
    return (octave - kOctaveFirst) * kPerOctave + ((value >> (octave - 4)) & (kPerOctave - 1));
  }

  /// The middle of a bucket.
  [[nodiscard]] static constexpr Duration value(std::size_t index) noexcept {
    const auto octave = kOctaveFirst + static_cast<std::uint32_t>(index) / kPerOctave;
    const std::uint64_t step = std::uint64_t{1} << (octave - 4);
    const std::uint64_t low = (kPerOctave + index % kPerOctave) * step;
    return Duration(static_cast<std::int64_t>(low + step / 2));
  }
};

/// The value below which `fraction` of `total` counts are. Zero for an empty histogram.
template <class Counts>
[[nodiscard]] Duration percentile(const Counts& counts, std::uint64_t total,
                                  double fraction) noexcept {
  if (total == 0) return Duration(0);
  const double wanted = fraction * static_cast<double>(total);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < LatencyBuckets::kCount; ++i) {
    seen += counts[i];
    if (static_cast<double>(seen) >= wanted && seen > 0) return LatencyBuckets::value(i);
  }
  return LatencyBuckets::value(LatencyBuckets::kCount - 1);
}

}  // namespace weir::inline v0::inline control
