#include "class_gate.h"

#include <algorithm>

#include "memory_orders.h"

namespace weir::inline v0::control {

void ClassGate::set_rules(const ClassRules& rules, const RuleModes& modes, std::uint32_t limit,
                          std::uint32_t process_max) noexcept {
  for (const Priority p : kPriorities) {
    for (const bool hedge : {false, true}) {
      bounds_[bound_index({p, hedge, 1})].store(share_bound(limit, rules.share_permille(p, hedge)),
                                                kRelaxed);
    }
    caps_[index_of(p)].store(rules.caps[index_of(p)], kRelaxed);
  }
  process_max_.store(process_max, kRelaxed);
  cap_mode_.store(modes.class_cap, kRelaxed);
  limit_mode_.store(modes.limit, kRelaxed);
  enforced_.store(modes.class_cap == RuleMode::kEnforce && modes.limit == RuleMode::kEnforce,
                  kRelaxed);
}

std::uint32_t ClassGate::bound(Priority priority) const noexcept {
  return bounds_[index_of(priority)].load(kRelaxed);
}

std::uint32_t ClassGate::cap(Priority priority) const noexcept {
  return caps_[index_of(priority)].load(kRelaxed);
}

OperatorState ClassGate::state() const noexcept {
  return operator_state(counts(), {.normal_bound = bound(Priority::kNormal),
                                   .normal_cap = cap(Priority::kNormal),
                                   .low_bound = bound(Priority::kLow),
                                   .low_cap = cap(Priority::kLow)});
}

ClassCounts ClassGate::counts() const noexcept {
  ClassCounts counts = unpack(word_.load(kRelaxed));
  counts.units[0] += critical_overflow_.load(kRelaxed);
  return counts;
}

// Never refused: when its 14 bits are full, the rest is counted beside the word.
ClassGate::Attempt ClassGate::take_critical(std::uint32_t cost) noexcept {
  const std::uint32_t charged = std::clamp<std::uint32_t>(cost, 1, kClassUnitsMax);
  std::uint64_t word = word_.load(kRelaxed);
  for (;;) {
    const ClassCounts counts = unpack(word);
    if (counts.of(Priority::kCritical) + charged > kClassUnitsMax) {
      critical_overflow_.fetch_add(charged, kRelaxed);
      return {
          .take = Take::kTaken,
          .seat = {.units = static_cast<std::uint16_t>(charged), .counted_critical_overflow = true},
          .in_flight = counts.sheddable()};
    }
    if (word_.compare_exchange_weak(word, word + charged, kAcqRel, kRelaxed)) {
      return {.take = Take::kTaken,
              .seat = {.units = static_cast<std::uint16_t>(charged)},
              .in_flight = counts.sheddable()};
    }
  }
}

// A rule that is off or in shadow: count the request all the same, so that switching the rule on
// finds true numbers; refuse only by what is still enforced.
ClassGate::Attempt ClassGate::take_unenforced(const ClassRequest& request, bool overtake) noexcept {
  const RuleMode cap_mode = cap_mode_.load(kRelaxed);
  const RuleMode limit_mode = limit_mode_.load(kRelaxed);
  const std::uint32_t bound = bounds_[bound_index(request)].load(kRelaxed);
  const std::uint32_t cap = caps_[index_of(request.priority)].load(kRelaxed);
  ClassRequest charged = request;
  charged.cost = charged_cost(request.cost, bound, cap);
  const std::uint32_t process_max = process_max_.load(kRelaxed);
  if (process_max != 0) charged.cost = std::min(charged.cost, process_max);

  std::uint64_t word = word_.load(kRelaxed);
  for (;;) {
    const ClassCounts counts = unpack(word);
    const bool over_cap = cap != 0 && counts.of(request.priority) + charged.cost > cap;
    const bool over_limit = counts.sheddable() + charged.cost > bound;
    if (over_cap && cap_mode == RuleMode::kEnforce) return {.take = Take::kClassCap};
    const bool over_process = process_max != 0 && counts.sheddable() + charged.cost > process_max;
    if (limit_mode == RuleMode::kEnforce) {
      if (over_limit) return {.take = Take::kLimit};
      if (over_process) return {.take = Take::kProcess};
      if (!overtake && (word & in_front(request)) != 0) return {.take = Take::kLimit};
    }
    Attempt attempt{.take = Take::kTaken, .in_flight = counts.sheddable() + charged.cost};
    if (over_cap && cap_mode == RuleMode::kShadow) {
      attempt.would = Take::kClassCap;
    } else if ((over_limit || over_process) && limit_mode == RuleMode::kShadow) {
      attempt.would = over_limit ? Take::kLimit : Take::kProcess;
    }
    // Beyond what the word can count, an unenforced rule lets the request pass uncounted.
    if (counts.of(request.priority) + charged.cost > kClassUnitsMax) return attempt;
    attempt.seat.units = static_cast<std::uint16_t>(charged.cost);
    const std::uint64_t next = word + (std::uint64_t{charged.cost} << shift_of(request.priority));
    if (word_.compare_exchange_weak(word, next, kAcqRel, kRelaxed)) return attempt;
  }
}

void ClassGate::set_waiting(bool high, bool normal) noexcept {
  const std::uint64_t bits = (high ? kHighWaits : 0) | (normal ? kNormalWaits : 0);
  std::uint64_t word = word_.load(kRelaxed);
  while ((word & kAnyWaits) != bits &&
         !word_.compare_exchange_weak(word, (word & ~kAnyWaits) | bits, kAcqRel, kRelaxed)) {
  }
}

}  // namespace weir::inline v0::control
