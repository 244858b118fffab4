#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/rng.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/control/admission_config.h"
#include "weir/control/admission_events.h"
#include "weir/control/admission_request.h"
#include "weir/control/admission_stats.h"
#include "weir/control/decision_record.h"
#include "weir/control/parker.h"
#include "weir/control/permit.h"
#include "weir/control/ticket.h"
#include "weir/control/waiter.h"
#include "weir/policy/baseline_exchange.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

/// The result of enter(): admitted, refused, or waiting.
struct Entered {
  enum class Kind : std::uint8_t { kAdmitted, kRefused, kWaiting };
  Kind kind = Kind::kRefused;
  Reason reason = Reason::kAdmitted;  // if refused
  Permit permit{};                    // if admitted
};

/// Decides whether a request may start now, must wait, or is refused, and gives the reason.
///
/// The checks have a fixed order. The first check that refuses ends the decision, and what earlier
/// checks took is given back:
///   1 deadline · 2 memory · 3 too large · 4 peer · 5 actor, then bytes · 6 class cap · 7 limit
/// There are three forms. try_admit() never waits. enter() and collect() wait without blocking, for
/// event loops. admit() blocks the thread through a Parker. Only check 7 can wait, and only for
/// high and normal. take_ticket() makes checks 1 to 6 alone, for a request that is not complete.
///
/// Promises: no bound is exceeded under any interleaving (each is checked and taken in one atomic
/// step); critical is never refused and never waits; a refusal changes only counters; everything
/// that a permit took is given back.
/// Thread-safety: any member, any thread, unless stated otherwise. The controller reads no clock:
/// `now` must come from one monotonic clock, but calls on different threads may be slightly out of
/// order.
/// Cost: two compare-exchanges per decision and two per finish. A lock is taken only to wait, to
/// grant to a waiter, or to insert an unknown actor. No allocation after construction, except by
/// add_scope().
/// Lifetime: must outlive its permits and waiters; the destructor asserts that none is left.
class AdmissionController {
 public:
  /// Returns a controller, or the errors in `config`, each with its key and the allowed range.
  [[nodiscard]] static Result<std::unique_ptr<AdmissionController>, ConfigErrors> create(
      const AdmissionConfig& config, Rng seed, EventSink* events = nullptr,
      std::string_view first_scope = "default");
  /// For a `config` that is known to be valid (asserted); otherwise use create(). `seed` keys the
  /// name hash and the jitter; draw it from the system's randomness in production. `first_scope`
  /// names the scope that exists from the start.
  AdmissionController(const AdmissionConfig& config, Rng seed, EventSink* events = nullptr,
                      std::string_view first_scope = "default");
  ~AdmissionController();
  AdmissionController(const AdmissionController&) = delete;
  AdmissionController& operator=(const AdmissionController&) = delete;

  // ---- scopes and names
  /// Adds a scope. ScopeId::kFirst exists from the start; at most scopes_max are allowed at once
  /// (asserted). The id is the lowest one that is not in use.
  ScopeId add_scope(std::string_view name, const LimitConfig& limit);
  /// Adds a scope with the caller's own policy; for experiments and tests.
  ScopeId add_scope(std::string_view name, std::unique_ptr<LimitPolicy> policy);
  /// Removes a scope that has no permit and no waiter (asserted) and that nobody uses by its id any
  /// more; the id may be given to another one. What it counted stays in stats().
  void remove_scope(ScopeId scope);
  /// Replaces the policy of a scope. The limit starts at the limit of the new policy.
  void set_policy(ScopeId scope, std::unique_ptr<LimitPolicy> policy);
  /// The identity of a name. The top-10 lists show the first bytes of the name as its label.
  [[nodiscard]] Identity identify(std::string_view name) const noexcept;
  /// The same for keys and tokens: no byte of the secret is stored.
  [[nodiscard]] Identity identify_secret(std::string_view secret) const noexcept;

  // ---- decisions
  [[nodiscard]] Result<Permit, Reason> try_admit(const AdmissionRequest& request,
                                                 TimePoint now) noexcept;
  /// Like try_admit(), but the request may wait. `waiter` must be idle or collected; see Waiter.
  [[nodiscard]] Entered enter(const AdmissionRequest& request, Waiter& waiter,
                              TimePoint now) noexcept;
  /// Checks 1 to 6 now; the request asks for its place later, by enter() with the ticket. A refused
  /// client is so told at once, although its request is not complete.
  [[nodiscard]] Result<Ticket, Reason> take_ticket(const AdmissionRequest& request,
                                                   TimePoint now) noexcept;
  /// The second part: as enter() for the request of the ticket (asserted: it has one), which is
  /// used up. With a ticket of this moment it decides what enter() alone would have decided.
  [[nodiscard]] Entered enter(Ticket&& ticket, Waiter& waiter, TimePoint now) noexcept;
  /// Returns the result of a waiter that is granted or refused (asserted).
  [[nodiscard]] Result<Permit, Reason> collect(Waiter& waiter, TimePoint now) noexcept;
  /// True: the waiter no longer waits and holds nothing; on_ready will not fire and is not running.
  /// False: it was not waiting; if it is granted or refused, it must be collected.
  bool cancel(Waiter& waiter) noexcept;
  /// Blocks the calling thread through `parker`, for at most the waiting time of the class.
  [[nodiscard]] Result<Permit, Reason> admit(const AdmissionRequest& request, Parker& parker,
                                             TimePoint now) noexcept;

  /// What enter() would do with this request now. Evaluates every step, also after the first
  /// refusal.
  ///
  /// Promises: takes and counts nothing. Under load the numbers may change before the next request.
  [[nodiscard]] DecisionRecord explain(const AdmissionRequest& request,
                                       TimePoint now) const noexcept;

  // ---- time and environment, driven by the owner
  /// The earliest time at which a waiter expires; TimePoint::max() if no request waits.
  [[nodiscard]] TimePoint next_expiry() const noexcept;
  /// Refuses waiters whose waiting time is over and closes measurement windows that are due. Call
  /// it at next_expiry(), and at least about every 100 ms.
  void expire(TimePoint now) noexcept;
  /// For owners that call expire() at next_expiry(). A waiter that is found more than `late` after
  /// its expiry was delayed by a stall of the process. It may wait for the same time once more, but
  /// not longer than 500 ms in total and not beyond its deadline. Requests finished during the
  /// stall are not used to estimate the capacity of the service. Zero, the default, switches this
  /// off.
  void forgive_pauses(Duration late) noexcept;
  /// Sets the memory usage (0 to 1). If it is not readable, it counts as 0 % and is reported.
  void set_memory(double usage, bool readable) noexcept;
  /// Applies all of `config` except the table sizes and scopes_max, which keep their old values.
  /// `config.limit` is for the first scope, if it exists; set_limit() is for the others. Returns
  /// the errors in `config`; if there are any, nothing changes.
  ConfigErrors reconfigure(const AdmissionConfig& config);
  /// Sets the limit configuration of one scope; `limit` must be valid. The limit in force is kept,
  /// clamped to the new bounds.
  void set_limit(ScopeId scope, const LimitConfig& limit) noexcept;

  /// For several gateways before one service: passes on what the others know of its latency, and
  /// returns what this one knows. Call it about once a second, or never.
  [[nodiscard]] BaselineReport exchange_baseline(ScopeId scope, const BaselineNews& news) noexcept;

  /// The queues on the way to the protected service overflow, or do not any more: as long as they
  /// do, the scope is overloaded. What is admitted does not depend on it.
  void set_queues_overflow(ScopeId scope, bool overflow) noexcept;

  // ---- state
  [[nodiscard]] bool is_overloaded(ScopeId scope, TimePoint now) const noexcept;
  /// The time after which a refused client should try again: from the drain rate, with jitter; not
  /// shorter than what a queue on the way advises.
  [[nodiscard]] Duration retry_after(ScopeId scope, TimePoint now, Rng& rng,
                                     Duration advised = {}) const noexcept;
  /// The limit in force.
  [[nodiscard]] std::uint32_t limit(ScopeId scope) const noexcept;
  /// The same with what counts against it. Cost: three loads; scope_stats() sums counters.
  [[nodiscard]] ScopeLoad load(ScopeId scope) const noexcept;
  [[nodiscard]] AdmissionStats stats() const noexcept;
  [[nodiscard]] ScopeStats scope_stats(ScopeId scope, TimePoint now) const noexcept;
  /// The number of scopes that exist now.
  [[nodiscard]] std::size_t scope_count() const noexcept;
  [[nodiscard]] std::vector<BudgetRow> top_actors(std::size_t count) const;
  [[nodiscard]] std::vector<BudgetRow> top_peers(std::size_t count) const;
  [[nodiscard]] AdmissionConfig config() const;
  /// The modes that a request with these overrides has now. Cost: one load; config() locks.
  [[nodiscard]] RuleModes modes(RuleOverrides overrides) const noexcept;
  /// The limit configuration of one scope; none if the caller supplied its policy.
  [[nodiscard]] std::optional<LimitConfig> limit_config(ScopeId scope) const;

  /// The bytes that a controller with this configuration allocates, all at construction.
  [[nodiscard]] static std::size_t memory_bytes(const AdmissionConfig& config) noexcept;

  class Impl;  // opaque

 private:
  friend class Permit;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::inline control
