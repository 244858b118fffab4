#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "weir/base/bounded_count.h"
#include "weir/control/admission_controller.h"

#include "budget_table.h"
#include "memory_gate.h"
#include "memory_orders.h"
#include "scope.h"

namespace weir::inline v0::inline control {

/// The numbers that every decision reads. Each is an atomic: reconfiguration stores them one by one
/// while requests are in flight, so a decision may see a mix of old and new values.
struct LiveRules {
  std::atomic<std::uint32_t> per_peer_limit{0};
  std::atomic<std::uint32_t> inflight_max{0};
  std::atomic<std::uint64_t> bytes_max{0};
  std::atomic<std::uint64_t> total_bytes_max{0};
  std::atomic<Duration> high_wait_max{Duration(0)};
  std::atomic<Duration> normal_wait_max{Duration(0)};
  std::atomic<std::uint32_t> waiting_max{0};
  std::atomic<Fairness> fair{Fairness::kActor};
  std::atomic<std::uint32_t> streams_max{0};
  std::atomic<double> warn_threshold{0};
  std::atomic<RuleModes> modes{};
  std::atomic<bool> all_enforced{false};

  void store(const AdmissionConfig& config) noexcept;
};

/// How many threads go through all scopes now. A scope is destroyed only when none does: a request
/// keeps its own scope in use, but a walk over all of them does not.
class ScopeWalks {
 public:
  class Walk {
   public:
    explicit Walk(ScopeWalks& walks) noexcept : count_(walks.count_) { count_.fetch_add(1); }
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;
    ~Walk() {
      if (count_.fetch_sub(1) == 1) count_.notify_all();
    }

   private:
    std::atomic<std::uint32_t>& count_;
  };
  /// Returns when every walk that began before this call has ended.
  void wait_for_end() const noexcept {
    for (std::uint32_t now = count_.load(); now != 0; now = count_.load()) count_.wait(now);
  }

 private:
  std::atomic<std::uint32_t> count_{0};
};

class AdmissionController::Impl {
 public:
  Impl(const AdmissionConfig& configured, Rng seed, EventSink* sink, std::string_view first_scope);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  using Taken = Permit::Taken;

  /// One pass through the steps. With a record it is a dry run: nothing is taken or counted, and
  /// every step is evaluated and recorded, also after the first refusal.
  struct Run {
    const AdmissionRequest& request;
    Scope& scope;
    TimePoint now;
    Taken& taken;
    DecisionRecord* record = nullptr;

    [[nodiscard]] bool dry() const noexcept { return record != nullptr; }
    [[nodiscard]] bool critical() const noexcept { return request.priority == Priority::kCritical; }
  };
  // Steps 1 to 5. On refusal everything is given back.
  [[nodiscard]] Reason take_holdings(const AdmissionRequest& request, Scope& scope, TimePoint now,
                                     Taken& taken) noexcept;
  [[nodiscard]] Reason take_holdings_by_rule(const Run& run) noexcept;
  [[nodiscard]] Reason check_deadline(const Run& run, const RuleModes& modes) noexcept;
  [[nodiscard]] Reason check_memory(const Run& run, const RuleModes& modes) noexcept;
  [[nodiscard]] Reason check_too_large(const Run& run, const RuleModes& modes) noexcept;
  [[nodiscard]] Reason take_peer(const Run& run, const RuleModes& modes) noexcept;
  [[nodiscard]] Reason take_actor(const Run& run, const RuleModes& modes) noexcept;
  [[nodiscard]] Reason take_total_bytes(const Run& run, const RuleModes& modes) noexcept;
  [[nodiscard]] Reason conclude(const Run& run, const DecisionStep& step) noexcept;
  // Steps 6 and 7.
  [[nodiscard]] Take take_seat(const AdmissionRequest& request, Scope& scope,
                               Taken& taken) noexcept;
  [[nodiscard]] Take look_at_seat(const Run& run) noexcept;

  [[nodiscard]] Entered take_place(const AdmissionRequest& request, Waiter& waiter, Scope& scope,
                                   Taken& taken, TimePoint now) noexcept;
  [[nodiscard]] Entered wait(const AdmissionRequest& request, Waiter& waiter, Scope& scope,
                             Taken& taken, TimePoint now) noexcept;
  [[nodiscard]] Entered refused(const AdmissionRequest& request, Scope& scope, Reason reason,
                                TimePoint now) noexcept;
  // Of tickets: step 6 in advance, and step 1 again.
  [[nodiscard]] bool over_class_cap(const AdmissionRequest& request,
                                    const Scope& scope) const noexcept;
  struct Period {
    TimePoint since;
    TimePoint now;
  };
  [[nodiscard]] bool deadline_passed(const AdmissionRequest& request, Scope& scope,
                                     const Period& held) noexcept;
  /// The modes of all rules for this request.
  [[nodiscard]] RuleModes modes_of(const AdmissionRequest& request) const noexcept {
    return request.modes.over(live.modes.load(kRelaxed));
  }
  /// The request's deadline if the deadline rule is enforced; else none.
  [[nodiscard]] TimePoint binding_deadline(const AdmissionRequest& request) const noexcept;
  /// Whose turns a request uses in the waiting room; zero: of nobody in particular.
  [[nodiscard]] std::uint64_t turns_of(const AdmissionRequest& request) const noexcept;
  /// The same where turns go by actor.
  [[nodiscard]] static std::uint64_t flow_of(const AdmissionRequest& request) noexcept;
  /// The request as its waiting room sees it.
  [[nodiscard]] WaitingRoom::Newcomer newcomer_of(const AdmissionRequest& request, Scope& scope,
                                                  TimePoint now) const noexcept;

  void give_back_holdings(Taken& taken) noexcept;
  /// Gives them back for a request that is refused, and counts that for its actor and its peer.
  void refuse_holdings(Taken& taken) noexcept;
  void give_back_seat(Taken& taken, TimePoint now) noexcept;
  [[nodiscard]] bool take_seat_again(Taken& taken) noexcept;
  void count_finished(const Taken& taken) noexcept;
  void count_error(const Taken& taken) noexcept;
  void count_admitted(const AdmissionRequest& request, Scope& scope) noexcept;
  void count_refusal(Scope& scope, Priority priority, Reason reason, TimePoint now,
                     std::string_view peer = {}) noexcept;
  void shadow(Scope& scope, Reason reason) noexcept {
    scope.counters.add_at(&ScopeCounters::would_refuse, index_of(reason));
  }
  void count_answer(const Taken& taken, bool overloaded) noexcept;
  void record(Taken& taken, Outcome outcome, TimePoint now) noexcept;
  void step_limiter(Scope& scope, TimePoint now) noexcept;
  void warn_if_near_bound(Scope& scope, TimePoint now) noexcept;

  [[nodiscard]] Scope& scope_at(ScopeId id) const noexcept {
    Scope* scope = scopes[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
    WEIR_ASSERT(scope != nullptr);
    return *scope;
  }
  /// Calls f for each scope, while none is destroyed.
  template <class F>
  void for_each_scope(F f) const {
    const ScopeWalks::Walk walk(walks);
    for (std::uint32_t i = 0; i < scopes_size; ++i) {
      if (Scope* scope = scopes[i].load()) f(*scope);
    }
  }
  /// Under config_mutex.
  ScopeId add_scope(std::unique_ptr<Scope> scope);
  [[nodiscard]] std::unique_ptr<Scope> take_out(ScopeId id) noexcept;
  static void add_counters(AdmissionStats& to, const Scope& of) noexcept;
  void apply(const AdmissionConfig& next) noexcept;
  [[nodiscard]] std::uint32_t gate_process_max() const noexcept {
    return process.shared ? 0 : config.max_concurrent;
  }

  // Each in cache lines of its own, first: the others then need no padding.
  ProcessGate process;
  ContendedCount<std::uint32_t> streaming;
  ContendedCount<std::uint64_t> total_bytes;
  EventSink* events;
  SipKey name_key;
  Rng rng;  // under config_mutex
  LiveRules live;
  MemoryGate memory;
  BudgetTable actors;
  BudgetTable peers;
  const std::uint32_t scopes_size;                // scopes_max
  std::unique_ptr<std::atomic<Scope*>[]> scopes;  // of that size, owned; nullptr: not in use
  mutable ScopeWalks walks;
  std::atomic<std::uint32_t> scope_count{0};  // in use; changes under config_mutex
  AdmissionStats gone;  // counters of the scopes that were removed; under config_mutex
  mutable std::mutex config_mutex;
  AdmissionConfig config;  // under config_mutex, except the values that are fixed at start
};

inline TimePoint AdmissionController::Impl::binding_deadline(
    const AdmissionRequest& request) const noexcept {
  return modes_of(request).deadline == RuleMode::kEnforce ? request.deadline : TimePoint{};
}

// The name hash is keyed, so nobody can choose which flows it maps to.
inline std::uint64_t AdmissionController::Impl::flow_of(const AdmissionRequest& request) noexcept {
  if (!request.actor.present()) return request.source;
  return std::max<std::uint64_t>(request.actor.key.low ^ request.actor.key.high, 1);
}

inline std::uint64_t AdmissionController::Impl::turns_of(
    const AdmissionRequest& request) const noexcept {
  return live.fair.load(kRelaxed) == Fairness::kOff ? 0 : flow_of(request);
}

// Always inline: every request that waits asks, and the struct need not pass through memory.
[[gnu::always_inline]] inline WaitingRoom::Newcomer AdmissionController::Impl::newcomer_of(
    const AdmissionRequest& request, Scope& scope, TimePoint now) const noexcept {
  WaitingRoom::Newcomer newcomer{.priority = request.priority,
                                 .deadline = binding_deadline(request),
                                 .actor = turns_of(request),
                                 .waiting_max = live.waiting_max.load(kRelaxed),
                                 .capacity_per_second = scope.drain.capacity(now)};
  if (request.hedge) return newcomer;
  if (request.priority == Priority::kHigh) newcomer.tier = live.high_wait_max.load(kRelaxed);
  if (request.priority == Priority::kNormal) newcomer.tier = live.normal_wait_max.load(kRelaxed);
  return newcomer;
}

}  // namespace weir::inline v0::inline control
