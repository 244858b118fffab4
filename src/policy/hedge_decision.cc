#include "policy/hedge_decision.h"

namespace weir::inline v0::inline policy {
namespace {

/// What forbids a hedge whatever the target is; kNone: nothing.
NoHedge forbids_every_hedge(const HedgeProgress& call, const HedgeConditions& conditions) noexcept {
  if (!conditions.enabled) return NoHedge::kDisabled;
  if (call.attempts >= call.attempts_max) return NoHedge::kAttemptsUsed;
  if (call.caller_attempt > 1) return NoHedge::kCallerRetries;
  if (conditions.cohort_slow) return NoHedge::kCohortSlow;
  if (conditions.overloaded) return NoHedge::kOverload;
  if (call.deadline_left && *call.deadline_left <= Duration::zero()) return NoHedge::kDeadline;
  return NoHedge::kNone;
}

}  // namespace

NoHedge may_hedge_at(const HedgeTarget& target, std::optional<Duration> deadline_left) noexcept {
  if (target.openness != Openness::kOpen) return NoHedge::kTargetOut;
  if (!target.own_zone) return NoHedge::kOtherZone;
  if (target.pushed_back) return NoHedge::kPushback;
  if (target.queue != OutgoingState::kHealthy) return NoHedge::kTargetQueue;
  if (target.in_flight_max > 0 && target.in_flight >= target.in_flight_max) {
    return NoHedge::kTargetFull;
  }
  if (!target.connection_ready) return NoHedge::kNoConnection;
  if (deadline_left && *deadline_left <= target.median) return NoHedge::kDeadline;
  return NoHedge::kNone;
}

HedgeChoice may_hedge(const HedgeProgress& call, const HedgeConditions& conditions,
                      std::span<const HedgeTarget> targets) noexcept {
  const NoHedge forbidden = forbids_every_hedge(call, conditions);
  if (forbidden != NoHedge::kNone) return {.reason = forbidden};
  HedgeChoice choice{.reason = NoHedge::kNoTarget};
  for (std::uint32_t i = 0; i < targets.size(); ++i) {
    const NoHedge objection = may_hedge_at(targets[i], call.deadline_left);
    if (objection == NoHedge::kNone) return {.target = i, .reason = NoHedge::kNone};
    if (i == 0) choice.reason = objection;
  }
  return choice;
}

}  // namespace weir::inline v0::inline policy
