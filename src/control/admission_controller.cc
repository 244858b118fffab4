#include "weir/control/admission_controller.h"

#include <algorithm>
#include <utility>

#include "weir/policy/retry_hint.h"

#include "admission_impl.h"
#include "memory_orders.h"

namespace weir::inline v0::inline control {

using Impl = AdmissionController::Impl;

void LiveRules::store(const AdmissionConfig& config) noexcept {
  per_peer_limit.store(config.per_peer_limit, kRelaxed);
  inflight_max.store(config.inflight_max, kRelaxed);
  bytes_max.store(config.bytes_max, kRelaxed);
  total_bytes_max.store(config.total_bytes_max, kRelaxed);
  high_wait_max.store(config.high_wait_max, kRelaxed);
  normal_wait_max.store(config.normal_wait_max, kRelaxed);
  waiting_max.store(config.waiting_max, kRelaxed);
  fair.store(config.fair, kRelaxed);
  streams_max.store(config.streams_max, kRelaxed);
  warn_threshold.store(config.warn_threshold, kRelaxed);
  modes.store(config.modes, kRelaxed);
  all_enforced.store(config.modes == RuleModes{}, kRelaxed);
}

// ---- construction and scopes

Impl::Impl(const AdmissionConfig& configured, Rng seed, EventSink* sink,
           std::string_view first_scope)
    : events(sink),
      rng(seed),
      actors(configured.actor_table_size),
      peers(configured.peer_table_size),
      scopes_size(configured.scopes_max),
      scopes(std::make_unique<std::atomic<Scope*>[]>(configured.scopes_max)),
      config(configured) {
  WEIR_ASSERT(configured.validate().empty());
  name_key = {.k0 = rng.next_u64(), .k1 = rng.next_u64()};
  process.shared = configured.scopes_max > 1;
  apply(configured);
  add_scope(std::make_unique<Scope>(first_scope, config.limit, rng.fork(), process));
}

Impl::~Impl() {
  // A permit or a waiter that outlives its controller would write to freed memory.
  WEIR_ASSERT(actors.idle() && peers.idle());
  WEIR_ASSERT(process.units.held() == 0 && streaming.held() == 0 && total_bytes.held() == 0);
  for (std::uint32_t i = 0; i < scopes_size; ++i) {
    if (scopes[i].load() != nullptr) take_out(static_cast<ScopeId>(i)).reset();
  }
}

ScopeId Impl::add_scope(std::unique_ptr<Scope> scope) {
  std::uint32_t index = 0;
  while (index < scopes_size && scopes[index].load() != nullptr) ++index;
  WEIR_ASSERT(index < scopes_size);
  scope->set_rules(config.classes, config.modes, gate_process_max());
  scopes[index].store(scope.release());
  scope_count.fetch_add(1);
  return static_cast<ScopeId>(index);
}

std::unique_ptr<Scope> Impl::take_out(ScopeId id) noexcept {
  std::unique_ptr<Scope> scope(scopes[static_cast<std::size_t>(id)].exchange(nullptr));
  WEIR_ASSERT(scope != nullptr);
  WEIR_ASSERT(scope->gate.sheddable() == 0 && scope->room.waiting() == 0);
  WEIR_ASSERT(scope->gate.counts().of(Priority::kCritical) == 0);
  scope_count.fetch_sub(1);
  return scope;
}

void Impl::add_counters(AdmissionStats& to, const Scope& of) noexcept {
  for (const Priority p : kPriorities) {
    to.admitted += of.counters.sum_at(&ScopeCounters::acquired, index_of(p));
    to.rejected += of.counters.sum_at(&ScopeCounters::shed, index_of(p));
  }
  to.critical_shed += of.counters.sum_at(&ScopeCounters::shed, index_of(Priority::kCritical));
}

void Impl::apply(const AdmissionConfig& next) noexcept {
  live.store(next);
  memory.set_rules(next.memory);
  process.max.store(next.max_concurrent, kRelaxed);
  process.mode.store(next.modes.limit, kRelaxed);
  for_each_scope(
      [&](Scope& scope) { scope.set_rules(next.classes, next.modes, gate_process_max()); });
}

AdmissionController::AdmissionController(const AdmissionConfig& config, Rng seed, EventSink* events,
                                         std::string_view first_scope)
    : impl_(std::make_unique<Impl>(config, seed, events, first_scope)) {}

AdmissionController::~AdmissionController() = default;

Result<std::unique_ptr<AdmissionController>, ConfigErrors> AdmissionController::create(
    const AdmissionConfig& config, Rng seed, EventSink* events, std::string_view first_scope) {
  if (ConfigErrors errors = config.validate(); !errors.empty()) {
    return unexpected(std::move(errors));
  }
  return std::make_unique<AdmissionController>(config, seed, events, first_scope);
}

ScopeId AdmissionController::add_scope(std::string_view name, const LimitConfig& limit) {
  WEIR_ASSERT(limit.validate().empty());
  const std::scoped_lock lock(impl_->config_mutex);
  return impl_->add_scope(std::make_unique<Scope>(name, limit, impl_->rng.fork(), impl_->process));
}

ScopeId AdmissionController::add_scope(std::string_view name, std::unique_ptr<LimitPolicy> policy) {
  const std::scoped_lock lock(impl_->config_mutex);
  return impl_->add_scope(std::make_unique<Scope>(name, std::move(policy), impl_->process));
}

void AdmissionController::remove_scope(ScopeId scope) {
  std::unique_ptr<Scope> removed;
  {
    const std::scoped_lock lock(impl_->config_mutex);
    removed = impl_->take_out(scope);
    Impl::add_counters(impl_->gone, *removed);
  }
  impl_->walks.wait_for_end();
}

void AdmissionController::set_policy(ScopeId scope, std::unique_ptr<LimitPolicy> policy) {
  impl_->scope_at(scope).set_policy(std::move(policy));
}

BaselineReport AdmissionController::exchange_baseline(ScopeId scope,
                                                      const BaselineNews& news) noexcept {
  return impl_->scope_at(scope).exchange_baseline(news);
}

Identity AdmissionController::identify(std::string_view name) const noexcept {
  return {.key = siphash128(impl_->name_key, name), .label = name};
}

Identity AdmissionController::identify_secret(std::string_view secret) const noexcept {
  return {.key = siphash128(impl_->name_key, secret), .label = {}};
}

// ---- decisions

Result<Permit, Reason> AdmissionController::collect(Waiter& waiter, TimePoint now) noexcept {
  Scope& scope = impl_->scope_at(waiter.scope_);
  scope.room.settle(waiter, now);
  const bool granted = waiter.state() == Waiter::State::kGranted;
  waiter.state_.store(Waiter::State::kIdle, std::memory_order_relaxed);
  if (!granted) {
    waiter.permit_.refuse_holdings();
    impl_->count_refusal(scope, waiter.priority_, waiter.reason_, now);
    return unexpected(waiter.reason_);
  }
  Result<Permit, Reason> result(std::in_place, std::move(waiter.permit_));
  if (waiter.would_refuse_ != Reason::kAdmitted) impl_->shadow(scope, waiter.would_refuse_);
  Permit::Taken& taken = result->taken_;
  taken.units = waiter.units_;
  taken.global_units = waiter.global_units_;
  taken.granted_at = now;
  scope.window.note_in_flight(scope.gate.sheddable());
  scope.counters.add_at(&ScopeCounters::acquired, index_of(waiter.priority_));
  return result;
}

bool AdmissionController::cancel(Waiter& waiter) noexcept {
  if (waiter.state() != Waiter::State::kWaiting) return false;
  Permit holdings;
  if (!impl_->scope_at(waiter.scope_).room.leave(waiter, holdings)) return false;
  holdings.drop_holdings();
  return true;
}

Result<Permit, Reason> AdmissionController::admit(const AdmissionRequest& request, Parker& parker,
                                                  TimePoint now) noexcept {
  Waiter waiter([](Waiter& w) noexcept { static_cast<Parker*>(w.context())->unpark(); }, &parker);
  Entered entered = enter(request, waiter, now);
  if (entered.kind == Entered::Kind::kAdmitted) return std::move(entered.permit);
  if (entered.kind == Entered::Kind::kRefused) return unexpected(entered.reason);
  for (;;) {
    const TimePoint woke = parker.park_until(waiter.expires_at());
    if (waiter.state() != Waiter::State::kWaiting) return collect(waiter, woke);
    if (woke < waiter.expires_at()) continue;
    Scope& scope = impl_->scope_at(request.scope);
    Permit holdings;
    if (!scope.room.leave(waiter, holdings, woke)) return collect(waiter, woke);
    holdings.refuse_holdings();
    const bool late = waiter.deadline_ != TimePoint{} && waiter.deadline_ <= woke;
    const Reason reason = late ? Reason::kDeadline : Reason::kOverload;
    impl_->count_refusal(scope, request.priority, reason, woke, request.peer.label);
    return unexpected(reason);
  }
}

// ---- time and environment

TimePoint AdmissionController::next_expiry() const noexcept {
  TimePoint first = TimePoint::max();
  impl_->for_each_scope(
      [&](const Scope& scope) { first = std::min(first, scope.room.next_expiry()); });
  return first;
}

void AdmissionController::expire(TimePoint now) noexcept {
  impl_->for_each_scope([&](Scope& scope) {
    scope.room.expire(now);
    scope.refresh_drain(now);
    impl_->step_limiter(scope, now);
    impl_->warn_if_near_bound(scope, now);
  });
}

void AdmissionController::forgive_pauses(Duration late) noexcept {
  impl_->process.stall_ns.store(late.count(), std::memory_order_relaxed);
}

void AdmissionController::set_memory(double usage, bool readable) noexcept {
  bool changed = false;
  {
    const std::scoped_lock lock(impl_->config_mutex);
    const MemoryLevel before = impl_->memory.level();
    const bool was_readable = impl_->memory.readable();
    impl_->memory.set(usage, readable);
    changed = was_readable != readable || before != impl_->memory.level();
  }
  if (changed && impl_->events != nullptr) {
    impl_->events->on_memory(
        {.readable = readable, .usage = impl_->memory.usage(), .level = impl_->memory.level()});
  }
}

ConfigErrors AdmissionController::reconfigure(const AdmissionConfig& config) {
  if (ConfigErrors errors = config.validate(); !errors.empty()) return errors;
  const std::scoped_lock lock(impl_->config_mutex);
  AdmissionConfig next = config;
  next.actor_table_size = impl_->config.actor_table_size;
  next.peer_table_size = impl_->config.peer_table_size;
  next.scopes_max = impl_->config.scopes_max;
  const LimitConfig before = std::exchange(impl_->config, next).limit;
  impl_->apply(next);
  if (before == next.limit || impl_->scopes[0].load() == nullptr) return {};
  impl_->scope_at(ScopeId::kFirst).set_limit(next.limit, impl_->rng.fork());
  return {};
}

void AdmissionController::set_limit(ScopeId scope, const LimitConfig& limit) noexcept {
  WEIR_ASSERT(limit.validate().empty());
  const std::scoped_lock lock(impl_->config_mutex);
  if (scope == ScopeId::kFirst) impl_->config.limit = limit;
  impl_->scope_at(scope).set_limit(limit, impl_->rng.fork());
}

void AdmissionController::set_queues_overflow(ScopeId scope, bool overflow) noexcept {
  impl_->scope_at(scope).queues_overflow.store(overflow, std::memory_order_relaxed);
}

// ---- state

bool AdmissionController::is_overloaded(ScopeId scope, TimePoint now) const noexcept {
  const Scope& s = impl_->scope_at(scope);
  return impl_->memory.level() != MemoryLevel::kNormal || s.overload.persists(now) ||
         s.queues_overflow.load(std::memory_order_relaxed);
}

Duration AdmissionController::retry_after(ScopeId scope, TimePoint now, Rng& rng,
                                          Duration advised) const noexcept {
  const Scope& s = impl_->scope_at(scope);
  const double rate = s.drain.per_second(now);
  return retry_hint({.drained_per_second = rate,
                     .ahead = s.room.waiting() + 1,
                     .fresh = rate > 0,
                     .advised = advised},
                    {}, rng);
}

std::uint32_t AdmissionController::limit(ScopeId scope) const noexcept {
  return impl_->scope_at(scope).limit();
}

ScopeLoad AdmissionController::load(ScopeId scope) const noexcept {
  const Scope& one = impl_->scope_at(scope);
  return {.limit = one.limit(), .in_flight = one.gate.sheddable(), .waiting = one.room.waiting()};
}

AdmissionStats AdmissionController::stats() const noexcept {
  AdmissionStats out;
  {
    const std::scoped_lock lock(impl_->config_mutex);  // a scope that leaves is counted once
    out = impl_->gone;
    impl_->for_each_scope([&](const Scope& scope) {
      Impl::add_counters(out, scope);
      out.in_flight += scope.gate.sheddable();
    });
  }
  out.streaming = impl_->streaming.held();
  out.bytes = impl_->total_bytes.held();
  out.memory_usage = impl_->memory.usage();
  out.memory_readable = impl_->memory.readable();
  out.actors = impl_->actors.used();
  out.peers = impl_->peers.used();
  return out;
}

ScopeStats AdmissionController::scope_stats(ScopeId scope, TimePoint now) const noexcept {
  ScopeStats out = impl_->scope_at(scope).stats(now);
  out.overloaded = is_overloaded(scope, now);
  return out;
}

std::size_t AdmissionController::scope_count() const noexcept {
  return impl_->scope_count.load();
}

std::vector<BudgetRow> AdmissionController::top_actors(std::size_t count) const {
  return impl_->actors.top(count);
}

std::vector<BudgetRow> AdmissionController::top_peers(std::size_t count) const {
  return impl_->peers.top(count);
}

RuleModes AdmissionController::modes(RuleOverrides overrides) const noexcept {
  return overrides.over(impl_->live.modes.load(kRelaxed));
}

AdmissionConfig AdmissionController::config() const {
  const std::scoped_lock lock(impl_->config_mutex);
  return impl_->config;
}

std::optional<LimitConfig> AdmissionController::limit_config(ScopeId scope) const {
  return impl_->scope_at(scope).configured();
}

std::size_t AdmissionController::memory_bytes(const AdmissionConfig& config) noexcept {
  return sizeof(Impl) + BudgetTable::memory_bytes(config.actor_table_size) +
         BudgetTable::memory_bytes(config.peer_table_size) +
         config.scopes_max * (sizeof(Scope) + sizeof(std::atomic<Scope*>));
}

}  // namespace weir::inline v0::inline control
