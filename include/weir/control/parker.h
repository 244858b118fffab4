#pragma once

#include "weir/base/time.h"

namespace weir::inline v0::control {

/// How a thread sleeps until it is woken or an instant has come. Control reads no clock and blocks
/// no thread by itself: whoever wants the blocking form of admission brings one of these
/// (io/thread_parker.h has the usual one; tests and simulations bring their own).
///
/// Promises to keep: an unpark() before park_until() makes that call return at once (a wake-up is
/// never lost); spurious returns are fine. unpark() may come from any thread and must not call into
/// the admission controller. One thread parks at a time.
class Parker {
 public:
  Parker() = default;
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;
  virtual ~Parker() = default;

  /// Sleeps until unpark() or `until`; returns the time at which it woke.
  virtual TimePoint park_until(TimePoint until) noexcept = 0;
  virtual void unpark() noexcept = 0;
};

}  // namespace weir::inline v0::control

namespace weir::inline v0 {
using control::Parker;
}  // namespace weir::inline v0
