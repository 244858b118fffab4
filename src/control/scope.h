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
#include "outcome_evidence.h"
#include "overload_signal.h"
#include "sample_window.h"
#include "scope_counters.h"
#include "waiting_room.h"

namespace weir::inline v0::inline control {

/// One limit with its state: the class word, the waiting room, the samples, the policy.
///
/// Thread-safety: any member, any thread. The policy is used only by the thread that holds the
/// claim (one atomic flag; the data path tries it and never waits for it).
class Scope {
 public:
  Scope(std::string_view name, std::unique_ptr<LimitPolicy> policy, ProcessGate& process);
  Scope(std::string_view name, const LimitConfig& limit, Rng rng, ProcessGate& process);

  void set_rules(const ClassRules& rules, const RuleModes& modes,
                 std::uint32_t process_max) noexcept;
  /// Installs the caller's own policy; the limit starts at the limit of that policy.
  void set_policy(std::unique_ptr<LimitPolicy> policy) noexcept;
  /// Sets the configured policy and its bounds. The limit in force is kept, clamped to the bounds;
  /// what the policy has learned is kept too, unless it is replaced by another policy.
  void set_limit(const LimitConfig& next, Rng rng) noexcept;

  /// Passes what other gateways know to the policy; see LimitPolicy::exchange().
  [[nodiscard]] BaselineReport exchange_baseline(const BaselineNews& news) noexcept;

  /// Closes the window if it is due and adjusts the limit. True if `change` was filled in.
  bool step_limiter(TimePoint now, LimitChange& change) noexcept;

  /// Gives units back and grants them to waiters.
  void give_back(const Seat& seat, Priority priority, TimePoint now) noexcept {
    if (gate.give_back(seat, priority)) room.pump(now);
  }
  void refresh_drain(TimePoint now) noexcept {
    drain.refresh(
        now, [this] { return counters.sum(&ScopeCounters::finished); },
        [this] { return room.waited_throughout(); });
  }

  /// The configuration of the limit; none if the caller supplied the policy.
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
  OutcomeEvidence evidence;
  DrainRate drain;
  OverloadSignal overload;
  std::atomic<bool> queues_overflow{false};  // those to the endpoints; set by their owner
  NoticeLimiter notices;

 private:
  /// The right to use the policy; only reconfiguration spins for it.
  class Claim;
  void install_policy(std::unique_ptr<LimitPolicy> policy) noexcept;
  void install_limit(std::uint32_t wanted) noexcept;

  std::string name_;
  // Under the claim:
  std::unique_ptr<LimitPolicy> policy_;
  std::optional<LimitConfig> configured_;  // none: the caller supplied the policy
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

}  // namespace weir::inline v0::inline control
