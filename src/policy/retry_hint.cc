#include "weir/policy/retry_hint.h"

#include <algorithm>

#include "weir/base/config_check.h"

namespace weir::inline v0::inline policy {
constexpr Duration kWaitMax = std::chrono::hours(1);

std::optional<Duration> expected_wait(const DrainState& drain) noexcept {
  if (!drain.fresh || !(drain.drained_per_second > 0)) return std::nullopt;  // NaN too
  const double seconds = drain.ahead / drain.drained_per_second;
  if (seconds >= to_seconds(kWaitMax)) return kWaitMax;
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

Duration retry_hint(const DrainState& drain, const RetryHintRules& rules, Rng& rng) noexcept {
  const double stretch = std::clamp(rules.jitter, 0.0, 1.0);
  const Duration ceiling(
      static_cast<std::int64_t>(static_cast<double>(rules.hint_max.count()) / (1.0 + stretch)));
  const Duration wait = std::max(expected_wait(drain).value_or(rules.hint_unknown), drain.advised);
  const Duration base = std::max(rules.hint_min, std::min(wait, ceiling));
  const Duration extra(
      static_cast<std::int64_t>(static_cast<double>(base.count()) * stretch * rng.unit()));
  return base + extra;
}

ConfigErrors RetryHintRules::validate() const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  ConfigErrors errors;
  check_range(errors, "hint_min_ms", hint_min, Duration(milliseconds(50)), Duration(hours(1)));
  check_range(errors, "hint_unknown_ms", hint_unknown, hint_min, Duration(hours(1)));
  // Twice the others, so that a jitter of at most 1 fits below it.
  check_range(errors, "hint_max_ms", hint_max,
              2 * std::min(std::max(hint_min, hint_unknown), Duration(hours(1))),
              Duration(hours(2)));
  check_range(errors, "jitter", jitter, 0.0, 1.0);
  return errors;
}

}  // namespace weir::inline v0::inline policy
