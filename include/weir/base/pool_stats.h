#pragma once

#include <cstdint>

namespace weir::inline v0 {

/// The statistics of a bounded pool; each field is a metric.
struct PoolStats {
  std::uint64_t used = 0;       // taken now
  std::uint64_t peak = 0;       // most ever taken at once
  std::uint64_t capacity = 0;   // the bound
  std::uint64_t exhausted = 0;  // how often a request found the pool empty

  bool operator==(const PoolStats&) const = default;
};

/// used / capacity, in [0, 1]; a pool with capacity 0 counts as full.
[[nodiscard]] constexpr double usage(const PoolStats& stats) noexcept {
  if (stats.capacity == 0) return 1.0;
  return static_cast<double>(stats.used) / static_cast<double>(stats.capacity);
}

}  // namespace weir::inline v0
