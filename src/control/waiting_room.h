#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "weir/base/bounded_count.h"
#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/control/admission_stats.h"
#include "weir/control/waiter.h"

#include "class_gate.h"

namespace weir::inline v0::control {

/// The process-wide bound, where several scopes share it.
struct ProcessGate {
  BoundedCount<std::uint32_t> units;
  std::atomic<std::uint32_t> max{0};
  std::atomic<bool> enforced{true};
  bool shared = false;  // false: the only scope's gate enforces the bound itself
  // Who is found so much later than its time waited for a process that stood still. Zero: nothing
  // is forgiven.
  std::atomic<std::int64_t> stall_ns{0};

  /// A request dearer than the whole bound is served alone, not never.
  [[nodiscard]] std::uint32_t cost_at_most(std::uint32_t cost) const noexcept {
    return shared ? std::min(cost, max.load(std::memory_order_relaxed)) : cost;
  }
  /// False: the bound is reached, and enforced. `over` says that it is reached.
  [[nodiscard]] bool take(std::uint32_t count, bool& over) noexcept {
    over = !units.try_add(count, max.load(std::memory_order_relaxed));
    if (!over) return true;
    if (enforced.load(std::memory_order_relaxed)) return false;
    units.add(count);
    return true;
  }
};

/// Who waits for a unit of one scope: high before normal, each first come first served.
///
/// Every change of who waits happens under one lock together with the waiter bits in the gate's
/// word, and whoever gives a unit back looks at those bits in the same atomic operation: so either
/// the releaser sees the waiter and pumps, or the waiter, which tries once more after setting its
/// bit, sees the unit. No wake-up is lost.
/// Thread-safety: any member, any thread. Cost: one lock; O(1) per hand-over; expire() looks at
/// every waiter.
class WaitingRoom {
 public:
  WaitingRoom(ClassGate& gate, ProcessGate& process) noexcept : gate_(gate), process_(process) {}

  /// Puts `waiter` (its request fields filled in) in line and tries at once. Returns granted,
  /// refused (room full, or it would wait too long) or waiting. Only the returned value says
  /// whether this call decided it: one that is left waiting may be decided by somebody else before
  /// the caller looks, and then its callback tells.
  [[nodiscard]] Waiter::State enter(Waiter& waiter, std::uint32_t waiting_max,
                                    double capacity_per_second, TimePoint now) noexcept;
  /// Who would enter: what decides whether there is any use in waiting.
  struct Newcomer {
    Priority priority = Priority::kNormal;
    Duration patience{};
    std::uint32_t waiting_max = 0;
    double capacity_per_second = 0;
  };
  /// Whether enter() would let it wait; changes nothing.
  [[nodiscard]] bool would_let_wait(const Newcomer& newcomer) const noexcept;
  /// True if the waiter was still in line; what it held is then in `holdings`. Its owner may free
  /// it as soon as it sees it cancelled, so nothing touches it after that.
  [[nodiscard]] bool leave(Waiter& waiter, Permit& holdings) noexcept;
  /// Waits until no callback of this waiter is running. Notes how long a granted one waited.
  void settle(Waiter& waiter, TimePoint now) noexcept;
  /// Hands free units to the first in line. `now` zero: unknown, nobody is expired.
  void pump(TimePoint now) noexcept;
  /// Refuses those whose time is over.
  void expire(TimePoint now) noexcept;

  [[nodiscard]] TimePoint next_expiry() const noexcept;
  /// Whether somebody has waited, and could be served, at every moment since this was last asked.
  [[nodiscard]] bool waited_throughout() noexcept { return !emptied_.exchange(waiting() == 0); }
  [[nodiscard]] std::uint32_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] WaitHistogram waited(Priority priority) const noexcept;

 private:
  static constexpr Duration kForgivenMax = std::chrono::milliseconds(500);
  using Line = IntrusiveList<Waiter, &Waiter::hook_>;

  [[nodiscard]] Line& line_of(Priority p) noexcept {
    return p == Priority::kHigh ? high_ : normal_;
  }
  [[nodiscard]] bool may_wait(const Newcomer& newcomer) const noexcept;
  void pump_locked(TimePoint now) noexcept;
  [[nodiscard]] bool serve(Line& line, TimePoint now) noexcept;
  void expire_line(Line& line, TimePoint now) noexcept;
  [[nodiscard]] bool time_is_over(Waiter& waiter, TimePoint now) noexcept;
  void decide(Line& line, Waiter& waiter, Waiter::State state, Reason reason) noexcept;
  void publish() noexcept;

  ClassGate& gate_;
  ProcessGate& process_;
  mutable std::mutex mutex_;
  Line high_;
  Line normal_;
  std::array<WaitHistogram, kPriorityCount> waited_{};
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<bool> emptied_{true};  // or stood still, since waited_throughout() was last asked
};

}  // namespace weir::inline v0::control
