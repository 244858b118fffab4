#pragma once

#include <atomic>
#include <cstdint>

namespace weir::inline v0::metrics {

/// Publishes a counter that is derived from others (a sum over threads, a difference of two totals)
/// and so may be read a little too low: what it returns never goes backwards.
///
/// Promises: publish() returns values that never fall, whoever calls it and in whatever order the
/// readings were taken. A reading below the last one is a torn or late sum and is held at the
/// last value. A source that starts again at zero (an upstream removed and added by a reload) is
/// announced by source_replaced(), then its readings continue from the last published value.
/// Thread-safety: publish from any thread; source_replaced only while nobody publishes.
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
