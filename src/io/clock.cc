#include "weir/experimental/io/clock.h"

#include <ctime>

namespace weir::inline v0::io {
namespace {

std::int64_t read_clock(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

TimePoint monotonic_now() noexcept {
  return time_from_ns(read_clock(CLOCK_MONOTONIC));
}

std::int64_t unix_seconds() noexcept {
  return read_clock(CLOCK_REALTIME_COARSE) / 1'000'000'000;
}

std::int64_t unix_millis() noexcept {
  return read_clock(CLOCK_REALTIME) / 1'000'000;
}

}  // namespace weir::inline v0::io
