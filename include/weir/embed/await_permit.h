#pragma once

#include <coroutine>
#include <utility>

#include "weir/base/result.h"
#include "weir/control/admission_controller.h"
#include "weir/embed/clock.h"

namespace weir::inline v0::embed {

/// Waits for a permit in a coroutine:
///
///   Result<Permit, Reason> permit = co_await AwaitPermit(admission, request, schedule);
///
/// `schedule(std::coroutine_handle<>)` is called when a coroutine that waited may continue, on the
/// thread that freed the unit and under a lock: it must not throw and may only enqueue the handle
/// and wake the thread that resumes it. Call AdmissionController::expire() as for every waiter.
/// A coroutine must not be destroyed while it waits.
/// Cost: a Waiter in the coroutine's frame; no allocation. No suspension if it need not wait.
template <class Schedule>
class [[nodiscard]] AwaitPermit {
 public:
  AwaitPermit(AdmissionController& admission, const AdmissionRequest& request, Schedule schedule)
      : admission_(admission), request_(request), schedule_(std::move(schedule)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }

  bool await_suspend(std::coroutine_handle<> waiting) noexcept {
    handle_ = waiting;
    Entered entered = admission_.enter(request_, waiter_, now());
    // From here on another thread may have resumed the coroutine and destroyed `this`.
    if (entered.kind == Entered::Kind::kWaiting) return true;
    if (entered.kind == Entered::Kind::kAdmitted) {
      decided_ = std::move(entered.permit);
    } else {
      decided_ = unexpected(entered.reason);
    }
    return false;
  }

  [[nodiscard]] Result<Permit, Reason> await_resume() noexcept {
    if (waiter_.state() == Waiter::State::kIdle) return std::move(decided_);
    return admission_.collect(waiter_, now());
  }

 private:
  static void on_ready(Waiter& waiter) noexcept {
    auto& self = *static_cast<AwaitPermit*>(waiter.context());
    self.schedule_(self.handle_);
  }

  AdmissionController& admission_;
  AdmissionRequest request_;
  Schedule schedule_;
  std::coroutine_handle<> handle_;
  Result<Permit, Reason> decided_ = unexpected(Reason::kOverload);
  Waiter waiter_{&AwaitPermit::on_ready, this};
};

}  // namespace weir::inline v0::embed
