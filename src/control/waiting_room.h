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
#include "waiting_line.h"

namespace weir::inline v0::inline control {

/// The process-wide bound, if several scopes share it.
struct ProcessGate {
  ContendedCount<std::uint32_t> units;
  std::atomic<std::uint32_t> max{0};
  std::atomic<RuleMode> mode{RuleMode::kEnforce};  // of the limit rule
  bool shared = false;  // false: the gate of the only scope enforces the bound itself
  // A waiter found later than this after its expiry was delayed by a stall of the process. Zero: no
  // wait is extended.
  std::atomic<std::int64_t> stall_ns{0};

  /// A request that costs more than the whole bound is charged the bound and served alone.
  [[nodiscard]] std::uint32_t cost_at_most(std::uint32_t cost) const noexcept {
    return shared ? std::min(cost, max.load(std::memory_order_relaxed)) : cost;
  }
  /// False: the bound is reached and enforced. `over`: the bound is reached.
  [[nodiscard]] bool take(std::uint32_t count, RuleOverrides modes, bool& over) noexcept {
    over = !units.try_add(count, max.load(std::memory_order_relaxed));
    if (!over) return true;
    if (modes.of(Rule::kLimit, mode.load(std::memory_order_relaxed)) == RuleMode::kEnforce) {
      return false;
    }
    units.add(count);
    return true;
  }
};

/// The waiters for a unit of one scope: high before normal, each by turns among actors (FairTurns).
/// While a line is standing (StandingLine) its waiters have 10 ms instead of their tier.
///
/// When the room is full, a newcomer takes the place of the newest waiter of the longest flow of
/// its own or a lower class, if that flow has at least two more waiters than the newcomer's own
/// flow. So one actor cannot fill the room, and the lengths of flows never move apart.
///
/// The lines and the waiter bits in the gate's word change together under one lock, and giving a
/// unit back reads those bits in the same atomic operation. So either the releasing thread sees the
/// waiter and pumps, or the waiter, which tries once more after setting its bit, sees the unit. No
/// wake-up is lost.
/// Thread-safety: any member, any thread. Cost: one lock; O(1) per grant; expire() is O(waiters).
class WaitingRoom {
 public:
  WaitingRoom(ClassGate& gate, ProcessGate& process) noexcept : gate_(gate), process_(process) {}

  /// What decides whether a new request may wait, and how long.
  struct Newcomer {
    Priority priority = Priority::kNormal;
    Duration tier{};          // the longest wait of its class; zero: it may not wait
    TimePoint deadline{};     // its own; zero: none
    std::uint64_t actor = 0;  // hash of the actor whose turns it uses; zero: none
    std::uint32_t waiting_max = 0;
    double capacity_per_second = 0;
  };
  /// Adds `waiter` (its request fields filled in) to its line, sets its expiry and tries at once.
  /// Returns granted, refused (room full, or it would wait too long) or waiting. Only the returned
  /// value tells whether this call decided it: another thread may decide a waiting one before the
  /// caller reads its state, and then the callback reports it.
  [[nodiscard]] Waiter::State enter(Waiter& waiter, const Newcomer& newcomer,
                                    TimePoint now) noexcept;
  /// How long enter() would let this request wait; zero: not at all. Changes nothing.
  [[nodiscard]] Duration would_let_wait(const Newcomer& newcomer, TimePoint now) const noexcept;
  /// True if the waiter was still waiting; what it held is then in `holdings`. The owner may free
  /// the waiter as soon as it sees the state cancelled, so this call does not access it afterwards.
  /// `expired_at`: its time was over then, which is a refusal of the line; zero: the client left.
  [[nodiscard]] bool leave(Waiter& waiter, Permit& holdings, TimePoint expired_at = {}) noexcept;
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
  /// Whether the line of this class is standing. Only high and normal have one.
  [[nodiscard]] bool standing(Priority priority, TimePoint now) const noexcept;

 private:
  static constexpr Duration kForgivenMax = std::chrono::milliseconds(500);
  /// How a newcomer is received: for how long it may wait, and if not at all, whether the line is
  /// the cause and not the newcomer's own deadline.
  struct Reception {
    Duration patience{};
    bool by_line = false;
    policy::FlowId flow = 0;
    Waiter* displaced = nullptr;  // who leaves so that it may enter
  };

  [[nodiscard]] WaitingLine& line_of(Priority p) noexcept {
    return p == Priority::kHigh ? high_ : normal_;
  }
  [[nodiscard]] const WaitingLine& line_of(Priority p) const noexcept {
    return p == Priority::kHigh ? high_ : normal_;
  }
  [[nodiscard]] Reception receive(const Newcomer& newcomer, Duration line_patience,
                                  TimePoint now) const noexcept;
  [[nodiscard]] Waiter* displaced_by(Priority priority, std::uint32_t same_flow) const noexcept;
  void refuse(Waiter& waiter, Reason reason, TimePoint now) noexcept;
  void pump_locked(TimePoint now) noexcept;
  [[nodiscard]] bool serve(WaitingLine& line, TimePoint now) noexcept;
  void expire_line(WaitingLine& line, TimePoint now) noexcept;
  [[nodiscard]] bool time_is_over(Waiter& waiter, TimePoint now) noexcept;
  [[nodiscard]] static bool too_late_for(WaitingLine& line, const Waiter& waiter,
                                         TimePoint now) noexcept;
  void decide(Waiter& waiter, Waiter::State state, Reason reason) noexcept;
  void publish(TimePoint now) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return high_.size() + normal_.size(); }

  ClassGate& gate_;
  ProcessGate& process_;
  mutable std::mutex mutex_;
  WaitingLine high_;
  WaitingLine normal_;
  std::array<WaitHistogram, kPriorityCount> waited_{};
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<bool> emptied_{true};  // or the process stalled, since the last waited_throughout()
};

}  // namespace weir::inline v0::inline control
