// The decision: steps 1 to 7 in order, and giving back what they took.
#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "admission_impl.h"
#include "memory_orders.h"

namespace weir::inline v0::inline control {

using Impl = AdmissionController::Impl;
using Taken = Impl::Taken;
using Charge = BudgetTable::Charge;

// The result of a step that does not pass: an enforced rule refuses, a rule in shadow mode counts.
Reason Impl::conclude(const Run& run, const DecisionStep& step) noexcept {
  if (run.dry()) run.record->add(step);
  if (step.passes) return Reason::kAdmitted;
  if (step.mode == RuleMode::kEnforce) return step.check;
  if (!run.dry()) shadow(run.scope, step.check);
  return Reason::kAdmitted;
}

Reason Impl::check_deadline(const Run& run, const RuleModes& modes) noexcept {
  const bool given = run.request.deadline != TimePoint{};
  const bool late = given && run.request.deadline <= run.now && modes.deadline != RuleMode::kOff;
  return conclude(run, {.check = Reason::kDeadline,
                        .mode = modes.deadline,
                        .applies = given,
                        .passes = !late || run.critical()});
}

Reason Impl::check_memory(const Run& run, const RuleModes& modes) noexcept {
  const Priority priority = run.request.priority;
  const bool enforced = modes.memory == RuleMode::kEnforce;
  const bool sheds =
      modes.memory != RuleMode::kOff &&
      (run.dry() ? memory.would_shed(priority, enforced) : memory.sheds(priority, enforced));
  return conclude(run, {.check = Reason::kMemory,
                        .mode = modes.memory,
                        .passes = !sheds,
                        .held = static_cast<std::uint64_t>(memory.usage() * 1e6)});
}

Reason Impl::check_too_large(const Run& run, const RuleModes& modes) noexcept {
  const std::uint64_t bytes = run.request.bytes;
  const std::uint64_t actor_max = live.bytes_max.load(kRelaxed);
  const std::uint64_t total_max = live.total_bytes_max.load(kRelaxed);
  const bool over_actor =
      run.request.actor.present() && modes.actor != RuleMode::kOff && bytes > actor_max;
  const bool over_total = modes.bytes != RuleMode::kOff && total_max != 0 && bytes > total_max;
  const bool by_actor = over_actor && (modes.actor == RuleMode::kEnforce || !over_total);
  return conclude(run, {.check = Reason::kTooLarge,
                        .mode = by_actor ? modes.actor : modes.bytes,
                        .passes = (!over_actor && !over_total) || run.critical(),
                        .bound = by_actor ? actor_max : total_max});
}

Reason Impl::take_peer(const Run& run, const RuleModes& modes) noexcept {
  const Identity& peer = run.request.peer;
  const BudgetCaps caps{.count_max = live.per_peer_limit.load(kRelaxed), .bytes_max = 0};
  DecisionStep step{.check = Reason::kPeerLimit,
                    .mode = modes.peer,
                    .applies = peer.present() && modes.peer != RuleMode::kOff,
                    .bound = caps.count_max};
  if (step.applies && run.dry()) {
    const BudgetTable::Look found = peers.look(peer, 0, caps);
    step.held = found.count;
    step.passes = !found.over_count || run.critical();
  } else if (step.applies) {
    const bool force = modes.peer == RuleMode::kShadow || run.critical();
    const BudgetTable::Charged charged = peers.charge(peer, 0, caps, force);
    run.taken.peer_entry = charged.entry;
    step.passes = charged.found() == Charge::kOk || run.critical();
  }
  return conclude(run, step);
}

Reason Impl::take_actor(const Run& run, const RuleModes& modes) noexcept {
  const AdmissionRequest& request = run.request;
  const BudgetCaps caps{.count_max = live.inflight_max.load(kRelaxed),
                        .bytes_max = live.bytes_max.load(kRelaxed)};
  DecisionStep step{.check = Reason::kActorInflight,
                    .mode = modes.actor,
                    .applies = request.actor.present() && modes.actor != RuleMode::kOff,
                    .bound = caps.count_max};
  if (!step.applies) return conclude(run, step);
  if (!run.dry()) {
    const bool force = modes.actor == RuleMode::kShadow || run.critical();
    const BudgetTable::Charged charged = actors.charge(request.actor, request.bytes, caps, force);
    run.taken.actor_entry = charged.entry;
    if (charged.found() == Charge::kBytes) step.check = Reason::kActorBytes;
    step.passes = charged.found() == Charge::kOk || run.critical();
    return conclude(run, step);
  }
  // One charge, recorded as two steps: first the count, then the bytes.
  const BudgetTable::Look found = actors.look(request.actor, request.bytes, caps);
  step.held = found.count;
  step.passes = !found.over_count || run.critical();
  const Reason by_count = conclude(run, step);
  step.check = Reason::kActorBytes;
  step.held = found.bytes;
  step.bound = caps.bytes_max;
  step.passes = !found.over_bytes || run.critical();
  const Reason by_bytes = conclude(run, step);
  return by_count != Reason::kAdmitted ? by_count : by_bytes;
}

Reason Impl::take_total_bytes(const Run& run, const RuleModes& modes) noexcept {
  const std::uint64_t bytes = run.request.bytes;
  const std::uint64_t max = live.total_bytes_max.load(kRelaxed);
  DecisionStep step{.check = Reason::kBytes,
                    .mode = modes.bytes,
                    .applies = max != 0 && modes.bytes != RuleMode::kOff,
                    .bound = max};
  const bool bounded = step.applies && bytes != 0 && !run.critical();
  if (run.dry()) {
    step.held = total_bytes.held();
    step.passes = !bounded || total_bytes.fits(bytes, max);
    return conclude(run, step);
  }
  run.taken.bytes = bytes;
  run.taken.total_bytes = modes.bytes != RuleMode::kOff;
  if (bytes == 0 || modes.bytes == RuleMode::kOff) return Reason::kAdmitted;
  step.passes = !bounded || total_bytes.try_add(bytes, max);
  const bool taken = bounded && step.passes;
  if (!step.passes && modes.bytes == RuleMode::kEnforce) {
    run.taken.total_bytes = false;
  } else if (!taken) {
    total_bytes.add(bytes);
  }
  return conclude(run, step);
}

// The fast path for the common case: every rule is enforced, none by the request's own mode, and
// none is near its bound. All other cases are checked rule by rule.
[[gnu::always_inline]] inline Reason Impl::take_holdings(const AdmissionRequest& request,
                                                         Scope& scope, TimePoint now,
                                                         Taken& taken) noexcept {
  const bool late = request.deadline != TimePoint{} && request.deadline <= now;
  const std::uint64_t total_max = live.total_bytes_max.load(kRelaxed);
  const std::uint64_t bytes_max = live.bytes_max.load(kRelaxed);
  const bool plain = live.all_enforced.load(kRelaxed) && !request.modes.any() &&
                     memory.level() == MemoryLevel::kNormal &&
                     request.priority != Priority::kCritical && !late && !request.peer.present() &&
                     request.bytes <= bytes_max && total_max != 0 && request.bytes <= total_max;
  if (!plain) [[unlikely]]
    return take_holdings_by_rule({request, scope, now, taken});
  if (request.actor.present()) {
    const BudgetCaps caps{.count_max = live.inflight_max.load(kRelaxed), .bytes_max = bytes_max};
    const BudgetTable::Charged charged = actors.charge(request.actor, request.bytes, caps, false);
    if (charged.result != Charge::kOk) [[unlikely]] {
      return charged.result == Charge::kBytes ? Reason::kActorBytes : Reason::kActorInflight;
    }
    taken.actor_entry = charged.entry;
  }
  taken.bytes = request.bytes;
  taken.total_bytes = true;
  if (request.bytes != 0 && !total_bytes.try_add(request.bytes, total_max)) [[unlikely]] {
    taken.total_bytes = false;
    refuse_holdings(taken);
    return Reason::kBytes;
  }
  return Reason::kAdmitted;
}

Reason Impl::take_holdings_by_rule(const Run& run) noexcept {
  using Step = Reason (Impl::*)(const Run&, const RuleModes&) noexcept;
  constexpr std::array<Step, 6> kSteps = {&Impl::check_deadline,  &Impl::check_memory,
                                          &Impl::check_too_large, &Impl::take_peer,
                                          &Impl::take_actor,      &Impl::take_total_bytes};
  const RuleModes modes = modes_of(run.request);
  Reason first = Reason::kAdmitted;
  for (const Step step : kSteps) {
    const Reason found = (this->*step)(run, modes);
    if (first == Reason::kAdmitted) first = found;
    if (first != Reason::kAdmitted && !run.dry()) break;
  }
  if (first != Reason::kAdmitted && !run.dry()) refuse_holdings(run.taken);
  return first;
}

[[gnu::always_inline]] inline Take Impl::take_seat(const AdmissionRequest& request, Scope& scope,
                                                   Taken& taken) noexcept {
  const ClassGate::Attempt attempt = scope.gate.try_take(
      {request.priority, request.hedge, process.cost_at_most(request.cost)}, request.modes, false);
  if (attempt.would != Take::kTaken) {
    shadow(scope, attempt.would == Take::kClassCap ? Reason::kClassLimit : Reason::kOverload);
  }
  if (attempt.take != Take::kTaken) return attempt.take;
  const std::uint16_t units = attempt.seat.units;
  if (process.shared && request.priority != Priority::kCritical && units > 0) {
    bool over = false;
    if (!process.take(units, request.modes, over)) {
      scope.give_back(attempt.seat, request.priority, TimePoint{});
      return Take::kProcess;
    }
    if (over && attempt.would == Take::kTaken && modes_of(request).limit == RuleMode::kShadow) {
      shadow(scope, Reason::kOverload);
    }
    taken.global_units = units;
  }
  taken.units = units;
  taken.critical_overflow = attempt.seat.counted_critical_overflow;
  scope.window.note_in_flight(attempt.in_flight);
  return Take::kTaken;
}

inline void Impl::give_back_holdings(Taken& taken) noexcept {
  if (taken.total_bytes && taken.bytes > 0) total_bytes.sub(taken.bytes);
  if (taken.actor_entry != Permit::kNoEntry) actors.give_back(taken.actor_entry, taken.bytes);
  if (taken.peer_entry != Permit::kNoEntry) peers.give_back(taken.peer_entry, 0);
  taken.total_bytes = false;
  taken.bytes = 0;
  taken.actor_entry = Permit::kNoEntry;
  taken.peer_entry = Permit::kNoEntry;
}

void Impl::refuse_holdings(Taken& taken) noexcept {
  if (taken.actor_entry != Permit::kNoEntry) actors.note_refused(taken.actor_entry);
  if (taken.peer_entry != Permit::kNoEntry) peers.note_refused(taken.peer_entry);
  give_back_holdings(taken);
}

inline void Impl::give_back_seat(Taken& taken, TimePoint now) noexcept {
  if (taken.global_units > 0) process.units.sub(taken.global_units);
  if (taken.stream_units > 0) streaming.sub(taken.stream_units);
  const Seat seat{.units = taken.units_returned ? std::uint16_t{0} : taken.units,
                  .counted_critical_overflow = taken.critical_overflow};
  taken.global_units = 0;
  taken.stream_units = 0;
  taken.units = 0;
  scope_at(taken.scope).give_back(seat, taken.priority, now);
}

// Those who return use half of their bound: otherwise many of them at once would leave no room for
// new requests, which wait for a short time only.
bool Impl::take_seat_again(Taken& taken) noexcept {
  Scope& scope = scope_at(taken.scope);
  const std::uint32_t cost = std::max<std::uint32_t>(taken.units, 1);
  const std::uint32_t in_flight = scope.gate.sheddable();
  const std::uint32_t room = (scope.gate.bound(taken.priority) + 1) / 2;
  const bool enforced =
      taken.modes.of(Rule::kLimit, live.modes.load(kRelaxed).limit) == RuleMode::kEnforce;
  if (enforced && taken.priority != Priority::kCritical && in_flight > 0 &&
      in_flight + cost > room) {
    return false;
  }
  const ClassGate::Attempt attempt =
      scope.gate.try_take({taken.priority, false, cost}, taken.modes, true);
  if (attempt.take != Take::kTaken) return false;
  const std::uint16_t units = attempt.seat.units;
  if (process.shared && taken.priority != Priority::kCritical && units > 0) {
    bool over = false;
    if (!process.take(units, taken.modes, over)) {
      scope.give_back(attempt.seat, taken.priority, TimePoint{});
      return false;
    }
    taken.global_units = units;
  }
  taken.units = units;
  taken.critical_overflow = attempt.seat.counted_critical_overflow;
  taken.units_returned = false;
  scope.window.note_in_flight(attempt.in_flight);
  return true;
}

void Impl::count_admitted(const AdmissionRequest& request, Scope& scope) noexcept {
  scope.counters.add_at(&ScopeCounters::acquired, index_of(request.priority));
}

Result<Permit, Reason> AdmissionController::try_admit(const AdmissionRequest& request,
                                                      TimePoint now) noexcept {
  Scope& scope = impl_->scope_at(request.scope);
  Result<Permit, Reason> result(std::in_place);
  Taken& taken = result->taken_;
  taken.granted_at = now;
  taken.scope = request.scope;
  taken.priority = request.priority;
  taken.route = request.route == 0 ? std::uint8_t{0} : Permit::source_of(request.route);
  taken.modes = request.modes;
  Reason reason = impl_->take_holdings(request, scope, now, taken);
  if (reason == Reason::kAdmitted) [[likely]] {
    const Take take = impl_->take_seat(request, scope, taken);
    if (take == Take::kTaken) [[likely]] {
      taken.owner = this;
      impl_->count_admitted(request, scope);
      return result;
    }
    impl_->refuse_holdings(taken);
    reason = take == Take::kClassCap ? Reason::kClassLimit : Reason::kOverload;
  }
  impl_->count_refusal(scope, request.priority, reason, now, request.peer.label);
  result = unexpected(reason);
  return result;
}

// Steps 6 and 7 of a request that holds what steps 1 to 5 took.
[[gnu::always_inline]] inline Entered Impl::take_place(const AdmissionRequest& request,
                                                       Waiter& waiter, Scope& scope, Taken& taken,
                                                       TimePoint now) noexcept {
  const Take take = take_seat(request, scope, taken);
  if (take == Take::kTaken) {
    count_admitted(request, scope);
    return {.kind = Entered::Kind::kAdmitted, .permit = Permit(taken)};
  }
  if (take == Take::kLimit) return wait(request, waiter, scope, taken, now);
  refuse_holdings(taken);
  return refused(request, scope, take == Take::kClassCap ? Reason::kClassLimit : Reason::kOverload,
                 now);
}

Entered Impl::refused(const AdmissionRequest& request, Scope& scope, Reason reason,
                      TimePoint now) noexcept {
  count_refusal(scope, request.priority, reason, now, request.peer.label);
  return {.kind = Entered::Kind::kRefused, .reason = reason};
}

Entered AdmissionController::enter(const AdmissionRequest& request, Waiter& waiter,
                                   TimePoint now) noexcept {
  Scope& scope = impl_->scope_at(request.scope);
  Taken taken{.owner = this,
              .granted_at = now,
              .scope = request.scope,
              .priority = request.priority,
              .route = request.route == 0 ? std::uint8_t{0} : Permit::source_of(request.route),
              .modes = request.modes};
  const Reason reason = impl_->take_holdings(request, scope, now, taken);
  if (reason != Reason::kAdmitted) return impl_->refused(request, scope, reason, now);
  return impl_->take_place(request, waiter, scope, taken, now);
}

Result<Ticket, Reason> AdmissionController::take_ticket(const AdmissionRequest& request,
                                                        TimePoint now) noexcept {
  Scope& scope = impl_->scope_at(request.scope);
  Result<Ticket, Reason> result(std::in_place);
  Taken& taken = result->holdings_.taken_;
  taken.granted_at = now;
  taken.scope = request.scope;
  taken.priority = request.priority;
  taken.route = request.route == 0 ? std::uint8_t{0} : Permit::source_of(request.route);
  taken.modes = request.modes;
  Reason reason = impl_->take_holdings(request, scope, now, taken);
  if (reason == Reason::kAdmitted && impl_->over_class_cap(request, scope)) {
    impl_->refuse_holdings(taken);
    reason = Reason::kClassLimit;
  }
  if (reason != Reason::kAdmitted) {
    static_cast<void>(impl_->refused(request, scope, reason, now));
    return unexpected(reason);
  }
  taken.owner = this;
  result->ask_ = {.deadline = request.deadline,
                  .turns = Impl::flow_of(request),
                  .cost = request.cost,
                  .hedge = request.hedge};
  return result;
}

Entered AdmissionController::enter(Ticket&& ticket, Waiter& waiter, TimePoint now) noexcept {
  WEIR_ASSERT(ticket);
  Taken taken = std::exchange(ticket.holdings_.taken_, Taken{});
  Scope& scope = impl_->scope_at(taken.scope);
  // Actor and peer are charged already: only the turns are left of them.
  const AdmissionRequest request{.priority = taken.priority,
                                 .scope = taken.scope,
                                 .source = ticket.ask_.turns,
                                 .cost = ticket.ask_.cost,
                                 .deadline = ticket.ask_.deadline,
                                 .hedge = ticket.ask_.hedge,
                                 .modes = taken.modes};
  const TimePoint since = std::exchange(taken.granted_at, now);
  if (impl_->deadline_passed(request, scope, {.since = since, .now = now})) {
    impl_->refuse_holdings(taken);
    return impl_->refused(request, scope, Reason::kDeadline, now);
  }
  return impl_->take_place(request, waiter, scope, taken, now);
}

Entered Impl::wait(const AdmissionRequest& request, Waiter& waiter, Scope& scope, Taken& taken,
                   TimePoint now) noexcept {
  scope.refresh_drain(now);
  const WaitingRoom::Newcomer newcomer = newcomer_of(request, scope, now);
  if (newcomer.tier > Duration(0)) {
    WEIR_ASSERT(waiter.state() == Waiter::State::kIdle ||
                waiter.state() == Waiter::State::kCancelled);
    WEIR_ASSERT(!waiter.permit_);
    waiter.permit_.taken_ = taken;
    waiter.scope_ = request.scope;
    waiter.priority_ = request.priority;
    waiter.cost_ = request.cost;
    waiter.units_ = 0;
    waiter.global_units_ = 0;
    waiter.entered_at_ = now;
    waiter.deadline_ = newcomer.deadline;
    waiter.would_refuse_ = Reason::kAdmitted;
    waiter.modes_ = request.modes;
    waiter.forgiven_ = false;
    const Waiter::State state = scope.room.enter(waiter, newcomer, now);
    if (state == Waiter::State::kWaiting) {
      scope.counters.add(&ScopeCounters::limit_hits);
      scope.overload.note(now);
      return {.kind = Entered::Kind::kWaiting};
    }
    Result<Permit, Reason> result = taken.owner->collect(waiter, now);
    if (result) return {.kind = Entered::Kind::kAdmitted, .permit = std::move(result).value()};
    return {.kind = Entered::Kind::kRefused, .reason = result.error()};
  }
  refuse_holdings(taken);
  return refused(request, scope, Reason::kOverload, now);
}

void Impl::step_limiter(Scope& scope, TimePoint now) noexcept {
  LimitChange change;
  if (scope.step_limiter(now, change) && events != nullptr) events->on_limit_change(change);
}

// Records at most one sample per permit: at the response headers, or at the end if none were sent.
// A stream can report overload after its headers (the trailers of gRPC): that counts, too.
inline void Impl::record(Taken& taken, Outcome outcome, TimePoint now) noexcept {
  if (taken.sampled && outcome != Outcome::kOverload) return;
  taken.sampled = true;
  Scope& scope = scope_at(taken.scope);
  bool look = false;
  switch (outcome) {
    case Outcome::kOk:
      if (scope.evidence.watching()) [[unlikely]]
        count_answer(taken, false);
      if (!taken.unsampled) look = scope.window.record(taken.granted_at, now);
      break;
    case Outcome::kIgnored: {
      // The client gave up after more than the baseline: the latency is at least that long, so it
      // is a sample. An earlier cancel gives no information.
      const Duration baseline = scope.baseline();
      if (!taken.unsampled && baseline > Duration(0) && now - taken.granted_at > baseline) {
        look = scope.window.record(taken.granted_at, now, true);
      }
      break;
    }
    case Outcome::kOverload:
      scope.evidence.watch();
      count_answer(taken, true);
      look = true;
      break;
    case Outcome::kError:
      break;
  }
  if (look) step_limiter(scope, now);
}

// ---- giving back

// Counts each permit once, when its unit of the limit is free: for a stream, at the headers.
inline void Impl::count_finished(const Taken& taken) noexcept {
  if (taken.stream_units > 0) return;
  scope_at(taken.scope).counters.add(&ScopeCounters::finished);
}

void Impl::count_error(const Taken& taken) noexcept {
  scope_at(taken.scope).counters.add(&ScopeCounters::errors);
}

void Permit::finish(Outcome outcome, TimePoint now) && noexcept {
  if (taken_.owner == nullptr) return;
  AdmissionController::Impl& impl = *taken_.owner->impl_;
  if (!taken_.served) impl.record(taken_, outcome, now);
  if (!taken_.served && outcome == Outcome::kError) impl.count_error(taken_);
  impl.give_back_holdings(taken_);
  if (!taken_.served) {
    impl.count_finished(taken_);
    impl.give_back_seat(taken_, now);
  }
  taken_.owner = nullptr;
}

void Permit::end_service(Outcome outcome, TimePoint now) noexcept {
  WEIR_ASSERT(taken_.owner != nullptr && has_units());
  if (taken_.served) return;
  AdmissionController::Impl& impl = *taken_.owner->impl_;
  impl.record(taken_, outcome, now);
  if (outcome == Outcome::kError) impl.count_error(taken_);
  impl.count_finished(taken_);
  impl.give_back_seat(taken_, now);
  taken_.served = true;
}

void Permit::reset() noexcept {
  if (taken_.owner == nullptr) return;
  AdmissionController::Impl& impl = *taken_.owner->impl_;
  if (std::uncaught_exceptions() > 0) impl.count_error(taken_);
  impl.give_back_holdings(taken_);
  if (!taken_.served) {
    impl.count_finished(taken_);
    impl.give_back_seat(taken_, TimePoint{});
  }
  taken_ = Taken{};
}

// For a waiter whose permit never got a unit: it is not counted as finished.
void Permit::drop_holdings() noexcept {
  if (taken_.owner == nullptr) return;
  taken_.owner->impl_->give_back_holdings(taken_);
  taken_ = Taken{};
}

void Permit::refuse_holdings() noexcept {
  if (taken_.owner == nullptr) return;
  taken_.owner->impl_->refuse_holdings(taken_);
  taken_ = Taken{};
}

bool Permit::to_streaming(TimePoint now) noexcept {
  WEIR_ASSERT(taken_.owner != nullptr && has_units());
  if (taken_.stream_units > 0 || taken_.served) return true;
  AdmissionController::Impl& impl = *taken_.owner->impl_;
  impl.record(taken_, Outcome::kOk, now);
  const std::uint16_t units = taken_.units > 0 ? taken_.units : std::uint16_t{1};
  if (taken_.priority == Priority::kCritical) {
    impl.streaming.add(units);
  } else if (!impl.streaming.try_add(units, impl.live.streams_max.load())) {
    return false;
  }
  impl.count_finished(taken_);
  impl.give_back_seat(taken_, now);
  taken_.stream_units = units;
  return true;
}

void Permit::give_units_back(TimePoint now) noexcept {
  WEIR_ASSERT(taken_.owner != nullptr && taken_.stream_units == 0);
  if (taken_.units_returned) return;
  const std::uint16_t units = taken_.units;
  taken_.owner->impl_->give_back_seat(taken_, now);
  taken_.units = units;
  taken_.units_returned = true;
}

bool Permit::try_take_units() noexcept {
  WEIR_ASSERT(taken_.owner != nullptr);
  return has_units() || taken_.owner->impl_->take_seat_again(taken_);
}

Result<void, Reason> Permit::try_grow(std::uint64_t bytes) noexcept {
  WEIR_ASSERT(taken_.owner != nullptr);
  AdmissionController::Impl& impl = *taken_.owner->impl_;
  RuleModes modes = taken_.modes.over(impl.live.modes.load());
  if (taken_.priority == Priority::kCritical) modes.bytes = modes.actor = RuleMode::kOff;
  Scope& scope = impl.scope_at(taken_.scope);
  const auto refused = [&scope, priority = taken_.priority](Reason reason) {
    scope.counters.add_at(&ScopeCounters::refused, refused_index(reason, priority));
    return unexpected(reason);
  };
  if (taken_.total_bytes) {
    const std::uint64_t max = impl.live.total_bytes_max.load();
    if (max == 0 || !impl.total_bytes.try_add(bytes, max)) {
      if (max != 0 && modes.bytes == RuleMode::kEnforce) return refused(Reason::kBytes);
      if (max != 0 && modes.bytes == RuleMode::kShadow) impl.shadow(scope, Reason::kBytes);
      impl.total_bytes.add(bytes);
    }
  }
  if (taken_.actor_entry != kNoEntry &&
      !impl.actors.grow(taken_.actor_entry, bytes, impl.live.bytes_max.load())) {
    const bool enforced = modes.actor == RuleMode::kEnforce;
    if (modes.actor == RuleMode::kShadow) impl.shadow(scope, Reason::kActorBytes);
    if (enforced || !impl.actors.grow(taken_.actor_entry, bytes, kActorBytesMax)) {
      if (taken_.total_bytes) impl.total_bytes.sub(bytes);
      return refused(Reason::kActorBytes);
    }
  }
  taken_.bytes += bytes;
  return {};
}

void Permit::shrink(std::uint64_t bytes) noexcept {
  WEIR_ASSERT(taken_.owner != nullptr && bytes <= taken_.bytes);
  AdmissionController::Impl& impl = *taken_.owner->impl_;
  if (taken_.total_bytes && bytes > 0) impl.total_bytes.sub(bytes);
  if (taken_.actor_entry != kNoEntry && bytes > 0) impl.actors.shrink(taken_.actor_entry, bytes);
  taken_.bytes -= bytes;
}

}  // namespace weir::inline v0::inline control
