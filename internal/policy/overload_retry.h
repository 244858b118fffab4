#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/enum_names.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"

#include "policy/retry_backoff.h"
#include "policy/send_again.h"

namespace weir::inline v0::inline policy {

/// A request that a client sent and that was refused for overload: by an answer (503, 429), or by
/// the client's own bounds before anything was sent.
struct OverloadedRequest {
  bool idempotent = false;
  bool processed = true;       // false: certainly not; the refusal says so, or nothing was sent
  std::uint32_t attempts = 1;  // made so far
  std::uint32_t retries = 0;   // of them, those that this function allowed
  std::optional<Pushback> pushback{};
  std::optional<Duration> deadline_left{};  // nullopt: no deadline
};

struct OverloadRetryRules {
  std::uint32_t attempts_max = 3;
  RetryBackoffRules backoff{};
};

enum class OverloadRetryReason : std::uint8_t {
  kAgain,
  kAttemptsUsed,
  kNotIdempotent,  // it may have been processed
  kPushback,       // the service wants no other attempt
  kDeadline,       // it would pass before the next attempt
};
WEIR_ENUM_NAMES(OverloadRetryReason, "again", "attempts_used", "not_idempotent", "pushback",
                "deadline")

struct OverloadRetry {
  OverloadRetryReason reason = OverloadRetryReason::kAttemptsUsed;
  Duration wait{};  // if it is sent again: not before this has passed

  [[nodiscard]] bool again() const noexcept { return reason == OverloadRetryReason::kAgain; }
};

/// Whether a client sends a refused request again, and when: after U(50, 200) ms × 2^retries, and
/// not before the time that the service asked for.
///
/// The caller takes a token of the redundancy budget if this allows a request that reached a
/// service; without one it is not sent.
/// Promises: never more than attempts_max attempts, never after the deadline, never before the
/// pushback; a request that may have been processed only if it is idempotent. Draws from `rng` at
/// most once. Thread-safety: pure. Cost: O(1).
[[nodiscard]] OverloadRetry retry_overloaded(const OverloadedRequest& request,
                                             const OverloadRetryRules& rules, Rng& rng) noexcept;

/// Whether the service behind a client looks overloaded: at least half of the answers of about the
/// last second said so. A client does not hedge then.
///
/// Thread-safety: none; one owner. Cost: O(1).
class OverloadedAnswers {
 public:
  struct Counts {
    std::uint32_t good = 0;
    std::uint32_t overloaded = 0;
  };
  /// Every 100 ms: adds what came since, and lets the older ones count less.
  void add(const Counts& counts) noexcept {
    good_ = good_ * kFade + counts.good;
    overloaded_ = overloaded_ * kFade + counts.overloaded;
  }
  [[nodiscard]] bool overloaded() const noexcept {
    return overloaded_ >= kEnough && overloaded_ >= good_;
  }

 private:
  static constexpr double kFade = 0.9;
  static constexpr double kEnough = 0.5;  // one answer counts for 0.6 s
  double good_ = 0;
  double overloaded_ = 0;
};

}  // namespace weir::inline v0::inline policy
