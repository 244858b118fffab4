#pragma once

#include <atomic>
#include <cstdint>

namespace weir::inline v0::metrics {

/// Publishes a counter that is derived from others (a sum over threads, a difference of two totals)
/// and so may be read a little too low. The published value never decreases.
///
/// Promises: publish() returns values that never decrease, on any thread and in any order of the
/// readings. For a reading below the last one, the last value is returned. If a source starts again
/// at zero (an upstream removed and added by a reload), call source_replaced(); its readings then
/// continue from the last published value.
/// Thread-safety: publish from any thread; source_replaced only while no thread publishes.
/// Cost: one compare-exchange when the value rises, else a load.
class MonotonicView {
 public:
  std::uint64_t publish(std::uint64_t reading) noexcept {
    const std::uint64_t value = base_ + reading;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < value && !last_.compare_exchange_weak(last, value, std::memory_order_relaxed)) {
    }
    return last < value ? value : last;
  }

  [[nodiscard]] std::uint64_t last() const noexcept {
    return last_.load(std::memory_order_relaxed);
  }

  void source_replaced() noexcept { base_ = last(); }

 private:
  std::atomic<std::uint64_t> last_{0};
  std::uint64_t base_ = 0;
};

}  // namespace weir::inline v0::metrics
