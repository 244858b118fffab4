#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
#include "weir/control/parker.h"
#include "weir/control/permit.h"
#include "weir/control/waiter.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::control {

/// What enter() did: a permit, a refusal, or neither yet.
struct Entered {
  enum class Kind : std::uint8_t { kAdmitted, kRefused, kWaiting };
  Kind kind = Kind::kRefused;
  Reason reason = Reason::kAdmitted;  // when refused
  Permit permit{};                    // when admitted
};

/// Decides for one request whether it may start: now, in a moment, or not at all, and why not.
///
/// The order is fixed; the first refusal ends it and gives back what earlier steps took:
///   1 deadline · 2 memory · 3 too large · 4 peer · 5 actor, then bytes · 6 class cap · 7 limit
/// Three ways in, over one mechanism: try_admit() never waits; enter() + collect() wait without
/// blocking, for event loops; admit() blocks the thread through a Parker. Only step 7 waits, and
/// only for high and normal.
///
/// Promises: no bound is exceeded under any interleaving (each is one compare-and-act); critical is
/// never refused and never waits; a refusal changes nothing but counters; whatever a permit took
/// comes back.
/// Thread-safety: any member, any thread, unless said otherwise. It reads no clock: `now` must come
/// from one monotonic clock, but calls on different threads may be slightly out of order.
/// Cost: two compare-exchanges per decision and as many to finish; a lock only to wait or to hand
/// over to a waiter, or to make room for an unknown actor. No allocation after construction and
/// add_scope().
/// Lifetime: outlives its permits and waiters; the destructor asserts that none is left.
class AdmissionController {
 public:
  /// `config` must be valid (config.validate() is empty; asserted). `seed` keys the name hash and
  /// jitters; draw it from the system's randomness in production. `first_scope` names the scope
  /// that is there from the start.
  AdmissionController(const AdmissionConfig& config, Rng seed, EventSink* events = nullptr,
                      std::string_view first_scope = "default");
  ~AdmissionController();
  AdmissionController(const AdmissionController&) = delete;
  AdmissionController& operator=(const AdmissionController&) = delete;

  // ---- scopes and names
  /// One scope exists from the start: ScopeId::kFirst. At most scopes_max in all: asserted.
  ScopeId add_scope(std::string_view name, const LimitConfig& limit);
  /// A scope with a policy of the caller's making; for experiments and tests.
  ScopeId add_scope(std::string_view name, std::unique_ptr<LimitPolicy> policy);
  /// Replaces the policy of a scope; the limit starts at the new policy's.
  void set_policy(ScopeId scope, std::unique_ptr<LimitPolicy> policy);
  /// The identity of a name; the label shows its first bytes in the top-10 lists.
  [[nodiscard]] Identity identify(std::string_view name) const noexcept;
  /// The same for keys and tokens: no byte of it is kept.
  [[nodiscard]] Identity identify_secret(std::string_view secret) const noexcept;

  // ---- decisions
  [[nodiscard]] Result<Permit, Reason> try_admit(const AdmissionRequest& request,
                                                 TimePoint now) noexcept;
  /// Like try_admit, but may leave `waiter` (idle or collected) waiting; see Waiter.
  [[nodiscard]] Entered enter(const AdmissionRequest& request, Waiter& waiter,
                              TimePoint now) noexcept;
  /// Takes what a ready waiter was given. Asserts that it is granted or refused.
  [[nodiscard]] Result<Permit, Reason> collect(Waiter& waiter, TimePoint now) noexcept;
  /// True: the waiter left the room, nothing is held, on_ready will not fire and is not running.
  /// False: it was not waiting (any more); a ready one must be collected.
  bool cancel(Waiter& waiter) noexcept;
  /// Blocks through `parker` for at most the class's waiting time.
  [[nodiscard]] Result<Permit, Reason> admit(const AdmissionRequest& request, Parker& parker,
                                             TimePoint now) noexcept;

  // ---- time and environment, driven by the owner
  /// The earliest instant at which a waiter runs out of patience; TimePoint::max() if none waits.
  [[nodiscard]] TimePoint next_expiry() const noexcept;
  /// Refuses waiters whose time is over, closes measurement windows that are due. Call it at
  /// next_expiry() and at least every 100 ms or so.
  void expire(TimePoint now) noexcept;
  /// For owners that call expire() at next_expiry(): who is found more than `late` after its time
  /// waited for a process that stood still. It may wait as long once more, though not longer than
  /// 500 ms in all nor beyond its deadline, and what was finished across the stall is not taken for
  /// what the service can do. Zero, the default: nothing is forgiven.
  void forgive_pauses(Duration late) noexcept;
  /// What the memory reader saw; an unreadable one counts as 0 % and is reported.
  void set_memory(double usage, bool readable) noexcept;
  /// Every number of `config` but the table sizes and scopes_max, which keep their old values.
  /// `config` must be valid. The limit's bounds apply to scopes that follow the default limit.
  void reconfigure(const AdmissionConfig& config) noexcept;
  /// New bounds for one scope that has a limit of its own.
  void set_limit_bounds(ScopeId scope, const LimitBounds& bounds) noexcept;

  // ---- what is going on
  [[nodiscard]] bool is_overloaded(ScopeId scope, TimePoint now) const noexcept;
  /// When a refused client should come back: from the drain rate, jittered by `rng`.
  [[nodiscard]] Duration retry_after(ScopeId scope, TimePoint now, Rng& rng) const noexcept;
  [[nodiscard]] AdmissionStats stats() const noexcept;
  [[nodiscard]] ScopeStats scope_stats(ScopeId scope, TimePoint now) const noexcept;
  [[nodiscard]] std::size_t scope_count() const noexcept;
  [[nodiscard]] std::vector<BudgetRow> top_actors(std::size_t count) const;
  [[nodiscard]] std::vector<BudgetRow> top_peers(std::size_t count) const;
  /// What one of them holds now; zeros for one who holds nothing.
  [[nodiscard]] BudgetRow actor_use(const Identity& actor) const;
  [[nodiscard]] BudgetRow peer_use(const Identity& peer) const;
  [[nodiscard]] AdmissionConfig config() const;

  /// Bytes that a controller of this configuration holds, all allocated at start.
  [[nodiscard]] static std::size_t memory_bytes(const AdmissionConfig& config) noexcept;

  class Impl;  // opaque

 private:
  friend class Permit;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::control

namespace weir::inline v0 {
using control::AdmissionController;
using control::Entered;
}  // namespace weir::inline v0
