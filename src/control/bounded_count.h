#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/assert.h"

namespace weir::inline v0::control {

/// A count with a bound that is given at each call, so that it can change while units are held.
/// Thread-safety: any member, any thread; the bound is never exceeded by try_add().
template <class T>
class BoundedCount {
 public:
  [[nodiscard]] bool try_add(T units, T bound) noexcept {
    T held = held_.load(std::memory_order_relaxed);
    do {
      if (!fits(held, units, bound)) return false;
    } while (!held_.compare_exchange_weak(held, held + units, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return true;
  }
  /// Whether try_add() would succeed now.
  [[nodiscard]] bool fits(T units, T bound) const noexcept { return fits(held(), units, bound); }
  /// For rules that only watch.
  void add(T units) noexcept { held_.fetch_add(units, std::memory_order_acq_rel); }
  void sub(T units) noexcept {
    const T before = held_.fetch_sub(units, std::memory_order_acq_rel);
    WEIR_ASSERT(before >= units);
  }
  [[nodiscard]] T held() const noexcept { return held_.load(std::memory_order_acquire); }

 private:
  [[nodiscard]] static bool fits(T held, T units, T bound) noexcept {
    return units <= bound && held <= bound - units;
  }

  alignas(64) std::atomic<T> held_{0};
};

}  // namespace weir::inline v0::control
