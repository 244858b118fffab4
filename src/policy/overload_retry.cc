#include "policy/overload_retry.h"

namespace weir::inline v0::inline policy {

OverloadRetry retry_overloaded(const OverloadedRequest& request, const OverloadRetryRules& rules,
                               Rng& rng) noexcept {
  using Reason = OverloadRetryReason;
  const Pushback pushback = request.pushback.value_or(Pushback{});
  if (request.attempts >= rules.attempts_max) return {.reason = Reason::kAttemptsUsed};
  if (request.processed && !request.idempotent) return {.reason = Reason::kNotIdempotent};
  if (pushback.stop) return {.reason = Reason::kPushback};
  const std::optional<Duration> wait = retry_wait({.retries = request.retries,
                                                   .other_available = false,
                                                   .pushback = pushback.wait,
                                                   .deadline_left = request.deadline_left},
                                                  rules.backoff, rng);
  if (!wait) return {.reason = Reason::kDeadline};
  return {.reason = Reason::kAgain, .wait = *wait};
}

}  // namespace weir::inline v0::inline policy
