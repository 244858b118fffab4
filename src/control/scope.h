#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/control/admission_config.h"
#include "weir/control/admission_events.h"
#include "weir/control/admission_stats.h"
#include "weir/policy/limit_config.h"

#include "class_gate.h"
#include "drain_rate.h"
#include "notice_limiter.h"
#include "overload_signal.h"
#include "sample_window.h"
#include "scope_counters.h"
#include "waiting_room.h"

namespace weir::inline v0::control {

/// One limit and all that belongs to it: the class word, who waits, the samples, the policy.
///
/// Thread-safety: any member, any thread. The policy is touched only by whoever holds the claim
/// (one atomic flag, tried on the data path, never waited for there).
class Scope {
 public:
  Scope(std::string_view name, std::unique_ptr<LimitPolicy> policy, ProcessGate& process);
  Scope(std::string_view name, const LimitConfig& limit, Rng rng, ProcessGate& process);

  void set_rules(const ClassRules& rules, const RuleModes& modes,
                 std::uint32_t process_max) noexcept;
  /// A policy of the caller's making; the limit starts at the policy's.
  void set_policy(std::unique_ptr<LimitPolicy> policy) noexcept;
  /// The configured policy and its bounds. The limit in force stays, moved into the bounds; what
  /// the policy has learned stays too, unless it is replaced by another.
  void set_limit(const LimitConfig& next, Rng rng) noexcept;

  /// Closes the window if it is due and moves the limit. True if `change` was filled in.
  bool step_limiter(TimePoint now, LimitChange& change) noexcept;

  /// A unit came back: serve who waits.
  void give_back(const Seat& seat, Priority priority, TimePoint now) noexcept {
    if (gate.give_back(seat, priority)) room.pump(now);
  }
  void refresh_drain(TimePoint now) noexcept {
    drain.refresh(
        now, [this] { return counters.sum(&ScopeCounters::finished); },
        [this] { return room.waited_throughout(); });
  }

  /// How its limit is found; none: by a policy of the caller's making.
  [[nodiscard]] std::optional<LimitConfig> configured() noexcept;
  [[nodiscard]] ScopeStats stats(TimePoint now) const noexcept;
  [[nodiscard]] std::uint32_t limit() const noexcept {
    return limit_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Duration baseline() const noexcept {
    return Duration(baseline_ns_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] double queue_estimate() const noexcept {
    return queue_estimate_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }

  ScopeCounterSlots counters;
  ClassGate gate;
  WaitingRoom room;
  SampleWindow window;
  DrainRate drain;
  OverloadSignal overload;
  NoticeLimiter notices;

 private:
  /// The right to touch the policy; spins only for reconfiguration.
  class Claim;
  void install_policy(std::unique_ptr<LimitPolicy> policy) noexcept;
  void install_limit(std::uint32_t wanted) noexcept;

  std::string name_;
  // Under the claim:
  std::unique_ptr<LimitPolicy> policy_;
  std::optional<LimitConfig> configured_;  // none: the policy is of the caller's making
  ClassRules rules_;
  RuleModes modes_;
  std::uint32_t process_max_ = 0;
  // Published:
  std::atomic<std::uint32_t> limit_{0};
  std::atomic<std::uint32_t> limit_min_{1};
  std::atomic<std::uint32_t> limit_max_{kClassUnitsMax};
  std::atomic<double> queue_estimate_{0};
  std::atomic<std::int64_t> latency_avg_ns_{0};
  std::atomic<std::int64_t> baseline_ns_{0};
  std::atomic<LimitReason> limit_reason_{LimitReason::kConfigured};

  std::atomic_flag claimed_ = ATOMIC_FLAG_INIT;
};

}  // namespace weir::inline v0::control
