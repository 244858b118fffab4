#pragma once

#include <cstdint>

#include "weir/base/time.h"
#include "weir/experimental/io/callback.h"

namespace weir::inline v0::io {

class TimerWheel;

/// One timer: after it is armed on a Loop (or a TimerWheel), it calls back once, at or after the
/// given time.
///
/// Promises: arming an armed timer changes its time; a cancelled timer never calls back; the
/// callback may arm, cancel or destroy any timer, also this one. It is never early, and late by at
/// most one wheel tick (1 ms) plus the delay of the loop itself.
/// Thread-safety: its loop's thread. Cost: O(1), no system call, no allocation, 64 bytes.
/// Lifetime: must not be armed when it is destroyed (its owner cancels it).
class Timer {
 public:
  using Fired = Callback<TimePoint>;  // gets the loop's now

  Timer() = default;
  explicit Timer(Fired fired) noexcept : fired_(fired) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  void on_fire(Fired fired) noexcept { fired_ = fired; }
  [[nodiscard]] bool armed() const noexcept { return slot_ != kIdle; }
  /// Valid only while armed.
  [[nodiscard]] TimePoint deadline() const noexcept { return deadline_; }

 private:
  friend class TimerWheel;
  static constexpr std::uint16_t kIdle = 0xFFFF;

  Timer* next_ = nullptr;
  Timer* previous_ = nullptr;
  TimePoint deadline_{};
  Fired fired_;
  std::uint16_t slot_ = kIdle;
};

}  // namespace weir::inline v0::io
