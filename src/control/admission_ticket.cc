// What a ticket is checked for besides the steps of every request.
#include "admission_impl.h"
#include "memory_orders.h"

namespace weir::inline v0::inline control {

using Impl = AdmissionController::Impl;

// Looked at, not taken: its units are those of the limit, which a ticket does not hold. A rule in
// shadow mode is counted by the second part, where it would refuse.
bool Impl::over_class_cap(const AdmissionRequest& request, const Scope& scope) const noexcept {
  const ClassGate::Look found = scope.gate.look(
      {request.priority, request.hedge, process.cost_at_most(request.cost)}, request.modes);
  return found.cap == Take::kClassCap && found.cap_mode == RuleMode::kEnforce;
}

// A deadline that had passed with the first part was counted there, if the rule was in shadow mode.
bool Impl::deadline_passed(const AdmissionRequest& request, Scope& scope,
                           const Period& held) noexcept {
  const RuleMode mode = modes_of(request).deadline;
  const TimePoint deadline = request.deadline;
  if (mode == RuleMode::kOff || deadline == TimePoint{} || deadline > held.now) return false;
  if (request.priority == Priority::kCritical) return false;
  if (mode == RuleMode::kEnforce) return true;
  if (deadline > held.since) shadow(scope, Reason::kDeadline);
  return false;
}

}  // namespace weir::inline v0::inline control
