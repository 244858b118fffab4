#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/rng.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

struct RetryBackoffRules {
  Duration wait_min = std::chrono::milliseconds(50);
  Duration wait_max = std::chrono::milliseconds(200);
};

/// What the moment of the next attempt depends on.
struct RetryMoment {
  std::uint32_t retries = 0;     // made by this call before this one; transparent ones do not count
  bool other_available = false;  // another endpoint, not tried yet, is available
  Duration pushback{};           // SendAgainDecision::wait
  std::optional<Duration> deadline_left{};  // nullopt: no deadline
};

/// How long to wait before the next attempt: nothing if another endpoint is available, otherwise
/// uniform in [wait_min, wait_max] × 2^retries; in both cases not less than the pushback. nullopt
/// if the deadline would pass before.
///
/// Promises: never shorter than the pushback; always shorter than deadline_left. The factor stops
/// growing at 2^10. Draws from `rng` once if no other endpoint is available, otherwise never.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] std::optional<Duration> retry_wait(const RetryMoment& moment,
                                                 const RetryBackoffRules& rules, Rng& rng) noexcept;

}  // namespace weir::inline v0::inline policy
