#include "class_gate.h"

#include <algorithm>

#include "memory_orders.h"

namespace weir::inline v0::inline control {

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

OperatorState ClassGate::state() const noexcept {
  return operator_state(counts(), {.normal_bound = bound(Priority::kNormal),
                                   .normal_cap = cap(Priority::kNormal),
                                   .low_bound = bound(Priority::kLow),
                                   .low_cap = cap(Priority::kLow)});
}

// Critical is never refused: if its 14 bits are full, the units are counted outside the word.
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

// For a rule that is off or in shadow mode: the request is counted anyway, so that the counts are
// right when the rule is switched on. Only rules that are enforced refuse.
ClassGate::Attempt ClassGate::take_unenforced(const ClassRequest& request, RuleOverrides overrides,
                                              bool overtake) noexcept {
  return take(rules_for(request), modes_for(overrides), overtake);
}

ClassGate::Modes ClassGate::modes_for(RuleOverrides overrides) const noexcept {
  return {.cap = overrides.of(Rule::kClassCap, cap_mode_.load(kRelaxed)),
          .limit = overrides.of(Rule::kLimit, limit_mode_.load(kRelaxed))};
}

ClassGate::Look ClassGate::look(const ClassRequest& request,
                                RuleOverrides overrides) const noexcept {
  const Modes modes = modes_for(overrides);
  const std::uint64_t word = word_.load(kRelaxed);
  const ClassCounts counts = unpack(word);
  const Rules rules = rules_for(request);
  Look found{.cap_mode = modes.cap,
             .limit_mode = modes.limit,
             .in_class = counts.of(request.priority),
             .class_cap = rules.cap,
             .in_flight = counts.sheddable(),
             .bound = rules.bound};
  if (request.priority == Priority::kCritical) return found;
  const bool overtake = modes.limit != RuleMode::kEnforce;
  if (modes.cap != RuleMode::kOff) found.cap = judge(word, rules, {.limit = false}, true);
  found.limit = judge(word, rules, {.cap = false}, overtake);
  if (found.limit == Take::kTaken) found.units = rules.charged.cost;
  return found;
}

}  // namespace weir::inline v0::inline control
