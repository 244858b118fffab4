#pragma once

#include "weir/base/time.h"

namespace weir::inline v0::inline control {

/// Blocks a thread until it is woken or a time is reached. Control reads no clock and blocks no
/// thread by itself: callers of the blocking form of admission supply a Parker
/// (embed/thread_parker.h has the usual one; tests and simulations have their own).
///
/// An implementation must promise: an unpark() before park_until() makes that call return at once
/// (no wake-up is lost). Spurious returns are allowed. unpark() may be called on any thread and
/// must not call the admission controller. Only one thread parks at a time.
class Parker {
 public:
  Parker() = default;
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;
  virtual ~Parker() = default;

  /// Blocks until unpark() or `until`; returns the current time.
  virtual TimePoint park_until(TimePoint until) noexcept = 0;
  virtual void unpark() noexcept = 0;
};

}  // namespace weir::inline v0::inline control
