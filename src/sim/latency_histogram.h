#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/base/time.h"

namespace weir::inline v0::sim {

/// Counts durations in bins of 1/64 of their power of two: a quantile is within 1.6 %.
///
/// Promises: add, merge and clear are exact in counts; the mean is exact to the nanosecond.
/// Thread-safety: none. Cost: add about 3 ns; merge and clear touch only bins in use; 9 KB.
class LatencyHistogram {
 public:
  void add(Duration value) noexcept {
    const std::int64_t ns = std::max<std::int64_t>(0, value.count());
    const std::size_t bin = bin_of(static_cast<std::uint64_t>(ns));
    ++bins_[bin];
    ++count_;
    sum_ns_ += static_cast<double>(ns);
    max_ns_ = std::max(max_ns_, ns);
    low_ = std::min(low_, bin);
    high_ = std::max(high_, bin);
  }

  void merge(const LatencyHistogram& other) noexcept {
    if (other.count_ == 0) return;
    for (std::size_t i = other.low_; i <= other.high_; ++i) bins_[i] += other.bins_[i];
    count_ += other.count_;
    sum_ns_ += other.sum_ns_;
    max_ns_ = std::max(max_ns_, other.max_ns_);
    low_ = std::min(low_, other.low_);
    high_ = std::max(high_, other.high_);
  }

  void clear() noexcept {
    for (std::size_t i = low_; i <= high_ && i < kBins; ++i) bins_[i] = 0;
    count_ = 0;
    sum_ns_ = 0;
    max_ns_ = 0;
    low_ = kBins;
    high_ = 0;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// How many are longer than `value`, to the bin.
  [[nodiscard]] std::uint64_t above(Duration value) const noexcept {
    const std::size_t bin =
        bin_of(static_cast<std::uint64_t>(std::max<std::int64_t>(0, value.count())));
    std::uint64_t longer = 0;
    for (std::size_t i = std::max(bin + 1, low_); i <= high_ && i < kBins; ++i) longer += bins_[i];
    return longer;
  }
  [[nodiscard]] Duration max() const noexcept { return Duration(max_ns_); }
  [[nodiscard]] Duration mean() const noexcept {
    return count_ == 0 ? Duration(0)
                       : Duration(static_cast<std::int64_t>(sum_ns_ / static_cast<double>(count_)));
  }

  /// The value below which a share q of all lies, interpolated inside its bin; zero if empty.
  [[nodiscard]] Duration quantile(double q) const noexcept {
    if (count_ == 0) return Duration(0);
    const double rank = q * static_cast<double>(count_);
    double before = 0;
    for (std::size_t i = low_; i <= high_; ++i) {
      const auto here = static_cast<double>(bins_[i]);
      if (here > 0 && before + here >= rank) {
        const auto start = static_cast<double>(start_of(i));
        const auto width = static_cast<double>(start_of(i + 1)) - start;
        const double value = start + width * std::max(0.0, rank - before) / here;
        return Duration(std::min(static_cast<std::int64_t>(value), max_ns_));
      }
      before += here;
    }
    return Duration(max_ns_);
  }

 private:
  static constexpr std::size_t kSubBits = 6;
  static constexpr std::size_t kSub = std::size_t{1} << kSubBits;
  static constexpr std::size_t kTopBit = 42;  // about 73 minutes; longer ones share the last bin
  static constexpr std::size_t kBins = (kTopBit - kSubBits + 1) * kSub;

  static std::size_t bin_of(std::uint64_t ns) noexcept {
    if (ns < kSub) return static_cast<std::size_t>(ns);
    const auto top = static_cast<std::size_t>(std::bit_width(ns)) - 1;
    const std::size_t shift = top - kSubBits;
    const auto sub = static_cast<std::size_t>(ns >> shift) - kSub;
    return std::min(kBins - 1, (shift + 1) * kSub + sub);
  }
  static std::uint64_t start_of(std::size_t bin) noexcept {
    WEIR_ASSERT(bin <= kBins);
    if (bin < kSub) return bin;
    const std::size_t shift = bin / kSub - 1;
    return std::uint64_t{kSub + bin % kSub} << shift;
  }

  std::array<std::uint32_t, kBins> bins_{};
  std::uint64_t count_ = 0;
  double sum_ns_ = 0;
  std::int64_t max_ns_ = 0;
  std::size_t low_ = kBins;
  std::size_t high_ = 0;
};

}  // namespace weir::inline v0::sim
