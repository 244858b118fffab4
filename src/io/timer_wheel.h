#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "weir/base/time.h"
#include "weir/experimental/io/timer.h"

namespace weir::inline v0::io {

/// Timers for thousands of deadlines: a wheel of 6 levels × 64 slots with a tick of 1 ms.
///
///   level of a timer = highest 6-bit digit in which its tick differs from the wheel's
///   slot of a timer  = that digit of its tick
///
/// A slot of level 0 holds one tick. A slot of level n > 0 is opened when the wheel reaches its
/// first tick, and its timers move down. The earliest slot always lies in the lowest used level.
///
/// Promises: as Timer. Timers of one tick fire in the order in which they were armed. A timer armed
/// from a callback for a time in the past fires at the next advance(), so a turn is finite.
/// Thread-safety: none. Cost: arm and cancel O(1); each timer moves at most 5 times; next_tick
/// O(1).
class TimerWheel {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(1);

  explicit TimerWheel(TimePoint start) noexcept : now_tick_(floor_tick(start)) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;
  ~TimerWheel();

  void arm(Timer& timer, TimePoint deadline) noexcept;
  void cancel(Timer& timer) noexcept {
    if (timer.armed()) unlink(timer);
  }

  /// Fires all timers due at `now`; returns how many.
  std::size_t advance(TimePoint now);

  /// When advance() has work at the earliest; nullopt without timers. Never later than the earliest
  /// deadline rounded up to its tick; earlier if a slot must be opened.
  [[nodiscard]] std::optional<TimePoint> next_wake() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr unsigned kLevels = 6;
  static constexpr unsigned kDigitBits = 6;
  static constexpr unsigned kSlots = 1U << kDigitBits;
  struct Opening {
    std::int64_t tick;
    unsigned slot;
  };

  [[nodiscard]] static std::int64_t floor_tick(TimePoint t) noexcept {
    return to_ns(t) / kTick.count();
  }
  [[nodiscard]] std::optional<Opening> next_opening() const noexcept;
  void place(Timer& timer) noexcept;
  void unlink(Timer& timer) noexcept;

  std::int64_t now_tick_;
  std::size_t size_ = 0;
  std::array<std::uint64_t, kLevels> used_{};     // bit s of word l: slot s of level l holds timers
  std::array<Timer*, kLevels * kSlots> heads_{};  // circular lists
};

}  // namespace weir::inline v0::io
