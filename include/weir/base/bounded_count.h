#pragma once

#include <atomic>

#include "weir/base/assert.h"

namespace weir::inline v0 {

/// A count with a bound that is passed to each call, so the bound can change while units are held.
/// Thread-safety: any member, any thread; try_add() never exceeds the bound. sub() is sequentially
/// consistent: if the caller then finds no waiter, a later waiter sees the free units.
template <class T>
class BoundedCount {
 public:
  /// `sum`, if given, receives the count after adding.
  [[nodiscard]] bool try_add(T units, T bound, T* sum = nullptr) noexcept {
    T held = held_.load(std::memory_order_relaxed);
    do {
      if (!fits(held, units, bound)) return false;
    } while (!held_.compare_exchange_weak(held, held + units, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    if (sum != nullptr) *sum = held + units;
    return true;
  }
  /// Whether try_add() would succeed now.
  [[nodiscard]] bool fits(T units, T bound) const noexcept { return fits(held(), units, bound); }
  /// Adds without a bound, for rules that are not enforced.
  void add(T units) noexcept { held_.fetch_add(units, std::memory_order_acq_rel); }
  void sub(T units) noexcept {
    const T before = held_.fetch_sub(units, std::memory_order_seq_cst);
    WEIR_ASSERT(before >= units);
  }
  [[nodiscard]] T held() const noexcept { return held_.load(std::memory_order_acquire); }

 private:
  [[nodiscard]] static bool fits(T held, T units, T bound) noexcept {
    return units <= bound && held <= bound - units;
  }

  std::atomic<T> held_{0};
};

/// A BoundedCount with a cache line of its own, for a count that many threads change.
template <class T>
class alignas(64) ContendedCount : public BoundedCount<T> {};

/// Raises `peak` to `value` if it is lower.
template <class T>
void raise_to(std::atomic<T>& peak, T value) noexcept {
  T seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace weir::inline v0
