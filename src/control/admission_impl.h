#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "weir/base/bounded_count.h"
#include "weir/control/admission_controller.h"

#include "budget_table.h"
#include "memory_gate.h"
#include "scope.h"

namespace weir::inline v0::control {

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

  [[nodiscard]] Entered wait(const AdmissionRequest& request, Waiter& waiter, Scope& scope,
                             Taken& taken, TimePoint now) noexcept;
  /// The request's deadline if the deadline rule is enforced; else none.
  [[nodiscard]] TimePoint binding_deadline(const AdmissionRequest& request) const noexcept;
  /// Whose turns a request uses in the waiting room; zero: of nobody in particular.
  [[nodiscard]] std::uint64_t turns_of(const Identity& actor) const noexcept;
  /// The request as its waiting room sees it.
  [[nodiscard]] WaitingRoom::Newcomer newcomer_of(const AdmissionRequest& request, Scope& scope,
                                                  TimePoint now) const noexcept;

  void give_back_holdings(Taken& taken) noexcept;
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
  /// Under config_mutex.
  ScopeId add_scope(std::unique_ptr<Scope> scope);
  void apply(const AdmissionConfig& next) noexcept;
  [[nodiscard]] std::uint32_t gate_process_max() const noexcept {
    return process.shared ? 0 : config.max_concurrent;
  }

  EventSink* events;
  SipKey name_key;
  Rng rng;  // under config_mutex
  LiveRules live;
  MemoryGate memory;
  ProcessGate process;
  ContendedCount<std::uint32_t> streaming;
  ContendedCount<std::uint64_t> total_bytes;
  BudgetTable actors;
  BudgetTable peers;
  std::unique_ptr<std::atomic<Scope*>[]> scopes;  // scopes_max entries, owned
  std::atomic<std::uint32_t> scope_count{0};
  mutable std::mutex config_mutex;
  AdmissionConfig config;  // under config_mutex, except the values that are fixed at start
};

}  // namespace weir::inline v0::control
