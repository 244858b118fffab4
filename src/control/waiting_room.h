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

namespace weir::inline v0::inline control {

/// The process-wide bound, if several scopes share it.
struct ProcessGate {
  ContendedCount<std::uint32_t> units;
  std::atomic<std::uint32_t> max{0};
  std::atomic<bool> enforced{true};
  bool shared = false;  // false: the gate of the only scope enforces the bound itself
  // A waiter found later than this after its expiry was delayed by a stall of the process. Zero: no
  // wait is extended.
  std::atomic<std::int64_t> stall_ns{0};

  /// A request that costs more than the whole bound is charged the bound and served alone.
  [[nodiscard]] std::uint32_t cost_at_most(std::uint32_t cost) const noexcept {
    return shared ? std::min(cost, max.load(std::memory_order_relaxed)) : cost;
  }
  /// False: the bound is reached and enforced. `over`: the bound is reached.
  [[nodiscard]] bool take(std::uint32_t count, bool& over) noexcept {
    over = !units.try_add(count, max.load(std::memory_order_relaxed));
    if (!over) return true;
    if (enforced.load(std::memory_order_relaxed)) return false;
    units.add(count);
    return true;
  }
};

/// The waiters for a unit of one scope: high before normal, each first come first served.
///
/// The lines and the waiter bits in the gate's word change together under one lock, and giving a
/// unit back reads those bits in the same atomic operation. So either the releasing thread sees the
/// waiter and pumps, or the waiter, which tries once more after setting its bit, sees the unit. No
/// wake-up is lost.
/// Thread-safety: any member, any thread. Cost: one lock; O(1) per grant; expire() is O(waiters).
class WaitingRoom {
 public:
  WaitingRoom(ClassGate& gate, ProcessGate& process) noexcept : gate_(gate), process_(process) {}

  /// Adds `waiter` (its request fields filled in) to its line and tries at once. Returns granted,
  /// refused (room full, or it would wait too long) or waiting. Only the returned value tells
  /// whether this call decided it: another thread may decide a waiting one before the caller reads
  /// its state, and then the callback reports it.
  [[nodiscard]] Waiter::State enter(Waiter& waiter, std::uint32_t waiting_max,
                                    double capacity_per_second, TimePoint now) noexcept;
  /// What decides whether a new request may wait.
  struct Newcomer {
    Priority priority = Priority::kNormal;
    Duration patience{};
    std::uint32_t waiting_max = 0;
    double capacity_per_second = 0;
  };
  /// Whether enter() would let this request wait; changes nothing.
  [[nodiscard]] bool would_let_wait(const Newcomer& newcomer) const noexcept;
  /// True if the waiter was still waiting; what it held is then in `holdings`. The owner may free
  /// the waiter as soon as it sees the state cancelled, so this call does not access it afterwards.
  [[nodiscard]] bool leave(Waiter& waiter, Permit& holdings) noexcept;
  /// Returns when no callback of this waiter is running. Records how long a granted one waited.
  void settle(Waiter& waiter, TimePoint now) noexcept;
  /// Grants free units to the first waiters. `now` zero: unknown, no waiter expires.
  void pump(TimePoint now) noexcept;
  /// Refuses waiters whose waiting time is over.
  void expire(TimePoint now) noexcept;

  [[nodiscard]] TimePoint next_expiry() const noexcept;
  /// Whether there was a waiter that could be served all the time since the last call.
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
  std::atomic<bool> emptied_{true};  // or the process stalled, since the last waited_throughout()
};

}  // namespace weir::inline v0::inline control
