#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/control/admission_request.h"
#include "weir/control/permit.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

/// A request that waits for a permit. The caller owns the memory (a field of its request object),
/// so waiting does not allocate.
///
/// States: idle → waiting → ready (granted or refused) → collected, or waiting → cancelled.
/// `on_ready` is called once, on the thread that freed the unit, under a lock of the waiting room.
/// It may only enqueue a task and wake its owner; it must not call the controller. The owner then
/// calls AdmissionController::collect() on its own thread. It is not called for a waiter that
/// cancel() cancelled, nor for one that enter() decided at once.
/// Thread-safety: enter() and collect() by the owner; cancel() by any thread, at any time except
/// while the owner enters the waiter again.
class Waiter {
 public:
  using Ready = void (*)(Waiter&) noexcept;

  enum class State : std::uint8_t { kIdle, kWaiting, kGranted, kRefused, kCancelled };

  explicit Waiter(Ready on_ready = nullptr, void* context = nullptr) noexcept
      : on_ready_(on_ready), context_(context) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  /// A waiter must not be destroyed while it waits, or is ready and not collected.
  ~Waiter() { WEIR_ASSERT(state() == State::kIdle || state() == State::kCancelled); }

  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] void* context() const noexcept { return context_; }
  /// When the wait expires; may be extended while it waits (AdmissionController::forgive_pauses).
  [[nodiscard]] TimePoint expires_at() const noexcept {
    return time_from_ns(expires_ns_.load(std::memory_order_relaxed));
  }

 private:
  friend class AdmissionController;
  friend class WaitingLine;
  friend class WaitingRoom;

  void set_expiry(TimePoint at) noexcept {
    expires_ns_.store(to_ns(at), std::memory_order_relaxed);
  }

  ListHook<Waiter> hook_;
  std::atomic<State> state_{State::kIdle};
  Ready on_ready_;
  void* context_;
  Permit permit_;  // holds peer, actor and bytes while waiting
  TimePoint entered_at_{};
  std::atomic<std::int64_t> expires_ns_{0};
  TimePoint deadline_{};
  std::uint32_t cost_ = 1;
  std::uint16_t units_ = 0;         // granted in the scope
  std::uint16_t global_units_ = 0;  // granted in the process
  ScopeId scope_ = ScopeId::kFirst;
  Priority priority_ = Priority::kNormal;
  Reason reason_ = Reason::kAdmitted;
  Reason would_refuse_ = Reason::kAdmitted;  // a rule in shadow mode, when it was granted
  RuleOverrides modes_{};                    // of its request
  std::uint8_t flow_ = 0;                    // of its line, while it waits
  bool forgiven_ = false;                    // its expiry was extended after a stall of the process
  bool entering_ = false;  // enter() is still running and returns the result: no on_ready
};

}  // namespace weir::inline v0::inline control
