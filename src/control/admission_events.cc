// What admission counts and reports of refusals and of classes that are near their bound.
#include "weir/control/admission_events.h"

#include <algorithm>

#include "admission_impl.h"
#include "memory_orders.h"

namespace weir::inline v0::inline control {

using Impl = AdmissionController::Impl;

// Counts an answer in total and by its sources. The place of an actor's entry in its table stands
// for the actor: it comes from the keyed hash, and is the same while the actor has requests in
// flight.
[[gnu::noinline]] void Impl::count_answer(const Taken& taken, bool overloaded) noexcept {
  using Dimension = policy::OutcomeSources::Dimension;
  ScopeCounterSlots& counters = scope_at(taken.scope).counters;
  counters.add(overloaded ? &ScopeCounters::overloads : &ScopeCounters::answered);
  const auto member = overloaded ? &ScopeCounters::overloads_from : &ScopeCounters::answered_from;
  if (taken.actor_entry != Permit::kNoEntry) {
    // Entries are grouped by buckets of the table: spread neighbours over the sources.
    constexpr std::uint32_t kGolden = 0x9E3779B9U;
    counters.add_from(member, source_index(Dimension::kActor, taken.actor_entry * kGolden >> 16U));
  }
  if (taken.route != 0) counters.add_from(member, source_index(Dimension::kRoute, taken.route));
  if (taken.endpoint != 0) {
    counters.add_from(member, source_index(Dimension::kEndpoint, taken.endpoint));
  }
}

void Impl::count_refusal(Scope& scope, Priority priority, Reason reason, TimePoint now,
                         std::string_view peer) noexcept {
  scope.counters.add_at(&ScopeCounters::refused, refused_index(reason, priority));
  scope.counters.add_at(&ScopeCounters::shed, index_of(priority));
  if (reason == Reason::kOverload) {
    scope.counters.add(&ScopeCounters::limit_hits);
    scope.overload.note(now);
  }
  if (events == nullptr) return;
  const std::uint64_t count = scope.notices.refusals.note(index_of(reason), now);
  if (count == 0) return;
  RefusalNotice notice{.scope = scope.name(),
                       .reason = reason,
                       .priority = priority,
                       .peer = peer,
                       .count = count,
                       .in_flight = scope.gate.sheddable(),
                       .limit = scope.limit(),
                       .queue_estimate = scope.queue_estimate(),
                       .memory_usage = memory.usage()};
  // These two refuse only when the whole bound is in use.
  if (reason == Reason::kPeerLimit) {
    notice.in_flight = notice.limit = live.per_peer_limit.load(kRelaxed);
  } else if (reason == Reason::kActorInflight) {
    notice.in_flight = notice.limit = live.inflight_max.load(kRelaxed);
  }
  events->on_refusals(notice);
}

void Impl::warn_if_near_bound(Scope& scope, TimePoint now) noexcept {
  if (events == nullptr) return;
  const ClassCounts counts = scope.gate.counts();
  const double share = live.warn_threshold.load(kRelaxed);
  for (const Priority p : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
    const std::uint32_t cap = scope.gate.cap(p);
    const std::uint32_t bound = scope.gate.bound(p);
    const std::uint32_t used = cap != 0 ? counts.of(p) : counts.sheddable();
    const std::uint32_t most = cap != 0 ? std::min(cap, bound) : bound;
    if (counts.of(p) == 0 || used < share * most) continue;
    if (scope.notices.warnings.note(index_of(p), now) == 0) continue;
    events->on_class_warning(
        {.scope = scope.name(), .priority = p, .in_flight = used, .bound = most});
  }
}

}  // namespace weir::inline v0::inline control
