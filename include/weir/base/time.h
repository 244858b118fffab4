#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace weir::inline v0 {

/// A span of time: signed 64-bit nanoseconds, about ±292 years.
using Duration = std::chrono::duration<std::int64_t, std::nano>;

/// The clock type of all time points of Weir. It has no now(): code below `io` does not read a
/// clock, it gets the time as an argument. `io` reads the monotonic clock, the simulator its event
/// queue.
struct Timeline {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  static constexpr bool is_steady = true;
};

/// A point in time. Points compare and subtract; the zero point means "never set".
using TimePoint = std::chrono::time_point<Timeline, Duration>;

/// The point `ns` nanoseconds after the origin of the clock; for adapters and tests.
[[nodiscard]] constexpr TimePoint time_from_ns(std::int64_t ns) noexcept {
  return TimePoint(Duration(ns));
}

[[nodiscard]] constexpr std::int64_t to_ns(TimePoint t) noexcept {
  return t.time_since_epoch().count();
}

[[nodiscard]] constexpr double to_seconds(Duration d) noexcept {
  return std::chrono::duration<double>(d).count();
}

[[nodiscard]] constexpr double to_millis(Duration d) noexcept {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace weir::inline v0
