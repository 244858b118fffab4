#pragma once

#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::io {

/// The time of the monotonic clock, the source of every TimePoint outside tests. Cost: about 20 ns.
/// Code that runs on a Loop uses Loop::now() instead.
[[nodiscard]] TimePoint monotonic_now() noexcept;

/// Seconds since 1970, for Date headers and logs; may jump.
[[nodiscard]] std::int64_t unix_seconds() noexcept;
/// The same in milliseconds.
[[nodiscard]] std::int64_t unix_millis() noexcept;

}  // namespace weir::inline v0::io
