#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/policy/outgoing_state.h"

#include "policy/endpoint_health.h"

namespace weir::inline v0::inline policy {

/// Why a read was not sent to a second endpoint; kNone: it may be, or was. A label of metrics.
enum class NoHedge : std::uint8_t {
  kNone,
  kNotNeeded,          // the answer, or the end of the call, came before the delay had passed
  kDisabled,           // by [hedge] or by the route
  kUnsafe,             // not a read: by its method, and no rule says that it is idempotent
  kBody,               // it has a body that is not kept, or not of a marked request
  kUpgrade,            // it asks for a protocol switch
  kAnswerStarted,      // a response byte went downstream
  kAttemptsUsed,       // as many attempts as allowed were made, or are under way
  kCallerRetries,      // the caller sends it again itself: x-weir-attempt above 1
  kCohortSlow,         // the usual answer takes longer than max_delay_ms
  kOverload,           // the scope is overloaded: a hedge would add to it
  kDeadline,           // no time is left, or less than the target usually takes
  kNoTarget,           // there is no other endpoint
  kTargetOut,          // the other one is draining, ejected, silent or on trial
  kOtherZone,          // the other one is in another zone
  kPushback,           // the other one asked for fewer requests
  kTargetQueue,        // the queue to the other one is not healthy
  kTargetFull,         // the other one holds its share
  kNoConnection,       // no connection to the other one is ready, and a hedge does not wait for one
  kBudget,             // the upstream's redundancy budget is empty
  kDestinationBudget,  // that of the late endpoint is empty
};
WEIR_ENUM_NAMES(NoHedge, "none", "not_needed", "disabled", "unsafe", "body", "upgrade",
                "answer_started", "attempts_used", "caller_retries", "cohort_slow", "overload",
                "deadline", "no_target", "target_out", "other_zone", "pushback", "target_queue",
                "target_full", "no_connection", "budget", "destination_budget")
inline constexpr std::size_t kNoHedgeCount = kNoHedgeNames.size();

/// The delay had passed, and something stood against a hedge. Otherwise none was wanted.
[[nodiscard]] constexpr bool was_due(NoHedge reason) noexcept {
  return reason >= NoHedge::kAnswerStarted;
}

/// A request that does no harm if two endpoints work on it. HedgeExecutor accepts nothing else, so
/// a write cannot reach it: there is no way to make a SafeRead of one.
class SafeRead {
 public:
  struct Facts {
    bool safe_method = false;        // GET or HEAD
    bool marked_idempotent = false;  // the route, or the gRPC method, says so
    bool has_body = false;
    bool body_kept = false;  // the body is complete and kept; needed for a marked request
    bool upgrade = false;
  };
  [[nodiscard]] static Result<SafeRead, NoHedge> of(const Facts& facts) noexcept {
    if (facts.upgrade) return unexpected(NoHedge::kUpgrade);
    if (!facts.safe_method && !facts.marked_idempotent) return unexpected(NoHedge::kUnsafe);
    if (facts.has_body && !(facts.marked_idempotent && facts.body_kept)) {
      return unexpected(NoHedge::kBody);
    }
    return SafeRead();
  }

 private:
  SafeRead() = default;
};

/// Where a call stands when its hedge is due.
struct HedgeProgress {
  std::uint32_t attempts = 1;  // made so far
  std::uint32_t attempts_max = 3;
  std::uint32_t caller_attempt = 1;
  std::optional<Duration> deadline_left{};  // nullopt: no deadline
};

/// What holds for all calls of the upstream now.
struct HedgeConditions {
  bool enabled = true;
  bool overloaded = false;   // the scope: AdmissionController::is_overloaded()
  bool cohort_slow = false;  // HedgeCohort::slow
};

/// An endpoint that an attempt could be sent to, as it is now. Those that the call has used are not
/// offered.
struct HedgeTarget {
  Openness openness = Openness::kOpen;
  OutgoingState queue = OutgoingState::kHealthy;
  bool own_zone = true;
  bool pushed_back = false;
  bool connection_ready = true;
  std::uint32_t in_flight = 0;
  std::uint32_t in_flight_max = 0;  // share_max(); 0: no bound
  Duration median{};                // of its latencies; zero: unknown
};

/// Whether a late read may be sent to this endpoint, apart from the budget.
/// Promises: kNone only for an open endpoint of the own zone with a healthy queue.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] NoHedge may_hedge_at(const HedgeTarget& target,
                                   std::optional<Duration> deadline_left) noexcept;

/// How long an endpoint that asked for fewer requests gets no hedge: for the time that it named, at
/// most 5 s, since it may be about one client; 1 s if it named none.
[[nodiscard]] constexpr Duration pushback_period(std::optional<Duration> asked) noexcept {
  constexpr Duration kUnnamed = std::chrono::seconds(1);
  constexpr Duration kMost = std::chrono::seconds(5);
  return std::clamp(asked.value_or(kUnnamed), Duration(0), kMost);
}

struct HedgeChoice {
  std::uint32_t target = 0;  // an index of `targets`, if the reason is kNone
  NoHedge reason = NoHedge::kNoTarget;
};

/// May a second attempt be made now, and at which endpoint? Asked when the delay has passed, not
/// when the request starts.
///
/// The checks, in this order: disabled, attempts used, caller retries, cohort slow, overload,
/// deadline; then the first target in order for which may_hedge_at() has no objection, or the
/// objection to the first one. The budget comes last and is not asked here: only taking a token
/// tells whether there is one.
///
/// Promises: total; never a hedge in overload, after the deadline or to a target that
/// may_hedge_at() refuses. Thread-safety: pure. Cost: O(targets).
[[nodiscard]] HedgeChoice may_hedge(const HedgeProgress& call, const HedgeConditions& conditions,
                                    std::span<const HedgeTarget> targets) noexcept;

/// What kind of answer an endpoint gave.
enum class AnswerKind : std::uint8_t {
  kGood,
  kAbsent,    // 404, 410, gRPC NOT_FOUND: a replica that lags behind may say so too
  kTryLater,  // 429, 502, 503, 504, gRPC UNAVAILABLE: AttemptFailure::kStatus
  kError,     // gRPC: any other failure; the request is not sent again for it
};
[[nodiscard]] constexpr AnswerKind answer_kind(std::uint32_t http_status) noexcept {
  if (http_status == 404 || http_status == 410) return AnswerKind::kAbsent;
  const bool later = http_status == 429 || (http_status >= 502 && http_status <= 504);
  return later ? AnswerKind::kTryLater : AnswerKind::kGood;
}

/// Of a gRPC answer without a message. RESOURCE_EXHAUSTED may also be about the client's own quota,
/// or about a message that is too long: it means "try later" only if its sender `names_a_wait`.
[[nodiscard]] constexpr AnswerKind grpc_answer_kind(std::uint32_t grpc_status,
                                                    bool names_a_wait) noexcept {
  constexpr std::uint32_t kNotFound = 5;
  constexpr std::uint32_t kResourceExhausted = 8;
  constexpr std::uint32_t kUnavailable = 14;
  if (grpc_status == 0) return AnswerKind::kGood;
  if (grpc_status == kNotFound) return AnswerKind::kAbsent;
  const bool later =
      grpc_status == kUnavailable || (grpc_status == kResourceExhausted && names_a_wait);
  return later ? AnswerKind::kTryLater : AnswerKind::kError;
}

}  // namespace weir::inline v0::inline policy
