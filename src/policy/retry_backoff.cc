#include "policy/retry_backoff.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

constexpr std::uint32_t kFactorDoublingsMax = 10;

}  // namespace

std::optional<Duration> retry_wait(const RetryMoment& moment, const RetryBackoffRules& rules,
                                   Rng& rng) noexcept {
  Duration wait = std::max(moment.pushback, Duration::zero());
  if (!moment.other_available) {
    const Duration drawn = rng.between(rules.wait_min, std::max(rules.wait_min, rules.wait_max));
    const std::int64_t factor = std::int64_t{1} << std::min(moment.retries, kFactorDoublingsMax);
    wait = std::max(wait, drawn * factor);
  }
  if (moment.deadline_left && wait >= *moment.deadline_left) return std::nullopt;
  return wait;
}

}  // namespace weir::inline v0::inline policy
