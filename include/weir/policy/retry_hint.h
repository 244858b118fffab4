#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/config_error.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// How many requests finish per second, and how many must finish before a new request is served.
struct DrainState {
  double drained_per_second = 0;  // requests finished, measured lately
  std::uint32_t ahead = 0;        // waiting, plus one
  bool fresh = false;             // measured within the last few windows, and requests do finish
  Duration advised{};             // by a queue on the way: OutgoingAdvice::delay
};

/// The expected wait of a new request: ahead / rate; nullopt if the rate is not known. At most one
/// hour, which means "too long to be useful".
[[nodiscard]] std::optional<Duration> expected_wait(const DrainState& drain) noexcept;

/// The bounds of the hint that a refused client gets.
struct RetryHintRules {
  Duration hint_min = std::chrono::milliseconds(50);
  Duration hint_unknown = std::chrono::milliseconds(100);  // if the drain rate is unknown
  Duration hint_max = std::chrono::seconds(5);  // while replicas restart, rates say little
  double jitter = 0.5;                          // the hint is lengthened by up to this share

  bool operator==(const RetryHintRules&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// The time after which a refused client should try again: uniform in [w, w × (1 + jitter)], where
/// w is the expected wait (hint_unknown if there is none), at least the advised one, clamped to
/// [hint_min, hint_max / (1 + jitter)].
///
/// Promises: within [hint_min, hint_max] for valid rules; not shorter than the expected wait unless
/// hint_max requires it; also spread at the bounds, so that clients do not all return at the same
/// time. Draws from `rng` exactly once.
[[nodiscard]] Duration retry_hint(const DrainState& drain, const RetryHintRules& rules,
                                  Rng& rng) noexcept;

/// The value of a Retry-After header: whole seconds, rounded up, at least 1.
[[nodiscard]] constexpr std::int64_t retry_after_seconds(Duration hint) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = hint.count();
  if (ns <= kSecond) return 1;
  return ns / kSecond + (ns % kSecond != 0 ? 1 : 0);
}

/// The value of the millisecond hints, rounded up, so that clients do not return too early.
[[nodiscard]] constexpr std::int64_t retry_after_millis(Duration hint) noexcept {
  constexpr std::int64_t kMilli = 1'000'000;
  const std::int64_t ns = hint.count();
  if (ns <= 0) return 0;
  return ns / kMilli + (ns % kMilli != 0 ? 1 : 0);
}

}  // namespace weir::inline v0::inline policy
