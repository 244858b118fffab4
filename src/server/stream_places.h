#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/bounded_count.h"
#include "weir/base/pool_stats.h"

#include "io/shared_blocks.h"

namespace weir::inline v0::inline server {

/// The places for concurrent requests, over all connections, loops and protocols.
///
/// Promises: under any interleaving, at most `count` are taken, and non-critical requests leave
/// `reserved` places to critical ones. A failed attempt to take a place is counted.
/// Thread-safety: any thread. Cost: a compare-exchange to take, a subtraction to give back.
class StreamPlaces {
 public:
  struct Shape {
    std::uint32_t count = 0;
    std::uint32_t reserved = 0;
  };
  explicit StreamPlaces(Shape shape) noexcept : shape_(shape) {}

  [[nodiscard]] bool take(io::Access access) noexcept {
    const std::uint32_t kept = access == io::Access::kCritical ? 0 : shape_.reserved;
    std::uint32_t used = 0;
    if (kept >= shape_.count || !used_.try_add(1, shape_.count - kept, &used)) {
      exhausted_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    raise_to(peak_, used);
    return true;
  }
  void give() noexcept { used_.sub(1); }

  [[nodiscard]] PoolStats stats() const noexcept {
    return {.used = used_.held(),
            .peak = peak_.load(std::memory_order_relaxed),
            .capacity = shape_.count,
            .exhausted = exhausted_.load(std::memory_order_relaxed)};
  }

 private:
  const Shape shape_;
  BoundedCount<std::uint32_t> used_;
  std::atomic<std::uint32_t> peak_{0};
  std::atomic<std::uint64_t> exhausted_{0};
};

}  // namespace weir::inline v0::inline server
