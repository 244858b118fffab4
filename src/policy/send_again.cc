#include "policy/send_again.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

constexpr SendAgainDecision no(SendAgainReason reason) noexcept {
  return {.verdict = SendAgain::kNo, .reason = reason};
}

/// What forbids every further attempt, whether or not the request was sent.
std::optional<SendAgainReason> forbidden(const FailedAttempt& failed, const ResendFacts& request,
                                         const CallProgress& call,
                                         const SendAgainRules& rules) noexcept {
  const Pushback pushback = failed.pushback.value_or(Pushback{});
  if (request.answered) return SendAgainReason::kAnswerStarted;
  if (call.deadline_left && *call.deadline_left <= std::max(pushback.wait, Duration::zero())) {
    return SendAgainReason::kDeadline;
  }
  if (call.attempts >= rules.attempts_max) return SendAgainReason::kAttemptsUsed;
  if (!request.body_kept) return SendAgainReason::kBodyGone;
  if (pushback.stop || pushback.wait > rules.pushback_wait_max) return SendAgainReason::kPushback;
  if (failed.failure == AttemptFailure::kEnhanceYourCalm) return SendAgainReason::kCalmDown;
  if (failed.failure == AttemptFailure::kHttp11Required) return SendAgainReason::kHttp11Required;
  return std::nullopt;
}

/// The endpoint had closed the kept connection before the request reached it, as far as one can
/// tell. Once per call: a second time in a row is a failing endpoint.
bool stale_connection(const FailedAttempt& failed, const CallProgress& call) noexcept {
  return failed.failure == AttemptFailure::kConnectionLost && failed.reused &&
         failed.processed != Processed::kYes && call.stale_connections <= 1;
}

SendAgainDecision judge(const FailedAttempt& failed, const ResendFacts& request,
                        const CallProgress& call) noexcept {
  if (!failed.written) return {SendAgain::kTransparent, SendAgainReason::kNotSent};
  if (failed.processed == Processed::kNo) {
    const bool again = failed.failure == AttemptFailure::kRefusedStream && call.refused_streams > 1;
    if (again) return no(SendAgainReason::kRefusedAgain);
    return {SendAgain::kTransparent, SendAgainReason::kNotProcessed};
  }
  if (request.upgrade) return no(SendAgainReason::kUpgrade);
  if (!request.idempotent) return no(SendAgainReason::kNotIdempotent);
  if (stale_connection(failed, call)) {
    return {SendAgain::kTransparent, SendAgainReason::kStaleConnection, true};
  }
  if (call.caller_attempt > 1) return no(SendAgainReason::kCallerRetries);
  return {SendAgain::kFromBudget, SendAgainReason::kIdempotent};
}

}  // namespace

SendAgainDecision may_send_again(const FailedAttempt& failed, const ResendFacts& request,
                                 const CallProgress& call, const SendAgainRules& rules) noexcept {
  if (const auto reason = forbidden(failed, request, call, rules)) return no(*reason);
  SendAgainDecision decision = judge(failed, request, call);
  if (decision.verdict != SendAgain::kNo && failed.pushback) {
    decision.wait = std::max(failed.pushback->wait, Duration::zero());
  }
  return decision;
}

}  // namespace weir::inline v0::inline policy
