#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace weir::inline v0 {

/// A span of time: signed 64-bit nanoseconds, about ±292 years.
using Duration = std::chrono::duration<std::int64_t, std::nano>;

/// Tags Weir's one time line. It has no now(): code below `io` cannot read a clock, it is told the
/// time. `io` fills it from the monotonic clock, the simulator from its event queue.
struct Timeline {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  static constexpr bool is_steady = true;
};

/// An instant on that line. Instants compare and subtract; the zero instant means "never set".
using TimePoint = std::chrono::time_point<Timeline, Duration>;

/// The instant `ns` nanoseconds after the line's origin; for adapters and tests.
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
