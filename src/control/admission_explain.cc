// explain(): a dry run of the same steps, which records them and takes nothing.
#include "admission_impl.h"
#include "memory_orders.h"

namespace weir::inline v0::inline control {

using Impl = AdmissionController::Impl;
using Verdict = DecisionRecord::Verdict;

// Steps 6 and 7, in the same order as take_seat().
Take Impl::look_at_seat(const Run& run) noexcept {
  const ClassGate::Look found = run.scope.gate.look(
      {run.request.priority, run.request.hedge, process.cost_at_most(run.request.cost)},
      run.request.modes);
  Take limit = found.limit;
  if (limit == Take::kTaken && process.shared && !run.critical() &&
      !process.units.fits(found.units, process.max.load(kRelaxed))) {
    limit = Take::kProcess;
  }
  const Reason by_cap = conclude(run, {.check = Reason::kClassLimit,
                                       .mode = found.cap_mode,
                                       .applies = found.class_cap != 0,
                                       .passes = found.cap == Take::kTaken,
                                       .held = found.in_class,
                                       .bound = found.class_cap});
  const Reason by_limit =
      conclude(run, {.check = Reason::kOverload,
                     .mode = found.limit_mode,
                     .passes = limit == Take::kTaken || found.limit_mode == RuleMode::kOff,
                     .held = found.in_flight,
                     .bound = found.bound});
  if (by_cap != Reason::kAdmitted) return Take::kClassCap;
  return by_limit != Reason::kAdmitted ? limit : Take::kTaken;
}

DecisionRecord AdmissionController::explain(const AdmissionRequest& request,
                                            TimePoint now) const noexcept {
  Scope& scope = impl_->scope_at(request.scope);
  DecisionRecord record;
  Permit::Taken nothing;
  const Impl::Run run{request, scope, now, nothing, &record};
  record.reason = impl_->take_holdings_by_rule(run);
  const Take seat = impl_->look_at_seat(run);
  if (record.reason == Reason::kAdmitted && seat != Take::kTaken) {
    record.reason = seat == Take::kClassCap ? Reason::kClassLimit : Reason::kOverload;
    const Duration patience =
        seat == Take::kLimit
            ? scope.room.would_let_wait(impl_->newcomer_of(request, scope, now), now)
            : Duration(0);
    if (patience > Duration(0)) {
      record.verdict = Verdict::kWaits;
      record.wait_max = patience;
      return record;
    }
  }
  if (record.reason != Reason::kAdmitted) record.verdict = Verdict::kRefused;
  return record;
}

}  // namespace weir::inline v0::inline control
