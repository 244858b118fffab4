#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/base/time.h"
#include "weir/policy/pool_share.h"

namespace weir::inline v0::inline policy {

/// The most body leases that one HTTP/2 stream may have as its window: 1 MiB by default.
inline constexpr std::uint32_t kWindowLeasesMax = 16;
/// A window is worth more leases if its client uses it up in less than this: then it is too small
/// for a round trip of this length, or for a shorter one.
inline constexpr Duration kWindowRound = std::chrono::milliseconds(500);

/// How the client of a stream has used its window.
struct WindowUse {
  std::uint32_t leases = 1;     // that the window has now
  Duration used_up_in{};        // the time for the last `leases` × lease size bytes
  bool handler_kept_up = true;  // for half of that time or more the handler had taken all
};

/// The leases that a stream's window should have, after its client used it up once.
///
///   | pool                     | used up in           | leases               |
///   |--------------------------|----------------------|----------------------|
///   | half or less is free     | any time             | one                  |
///   | more is free             | > 4 × kWindowRound   | half as many         |
///   | more than 3/4 stay free  | < kWindowRound       | twice as many        |
///   | otherwise                |                      | as many as now       |
///
/// So a window grows up to what its client sends in kWindowRound, as TCP's does, and a slow upload
/// has one lease. What grows leaves three quarters of the pool to streams that begin.
/// Promises: 1 ≤ result ≤ kWindowLeasesMax; it never grows while a quarter or more is in use, and
/// never for a handler that is slower than its client.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr std::uint32_t window_leases(const WindowUse& use,
                                                    const PoolFill& pool) noexcept {
  const std::uint32_t now = std::clamp(use.leases, 1U, kWindowLeasesMax);
  if (2 * pool.free <= pool.capacity) return 1;
  if (use.used_up_in > 4 * kWindowRound) return std::max(now / 2, 1U);
  if (use.used_up_in >= kWindowRound || !use.handler_kept_up) return now;
  const std::uint32_t twice = std::min(2 * now, kWindowLeasesMax);
  const bool enough = 4 * pool.free > 3 * pool.capacity + 4 * std::uint64_t{twice - now};
  return enough ? twice : now;
}

}  // namespace weir::inline v0::inline policy
