#pragma once

#include <cstdint>

#include "weir/base/enum_names.h"
#include "weir/policy/class_admission.h"

namespace weir::inline v0::inline policy {

/// The state of a scope as operators see it.
///   kHealthy     every class has room
///   kPressured   low is at its bound
///   kOverloaded  normal is at its bound; only high and critical get through
enum class OperatorState : std::uint8_t { kHealthy, kPressured, kOverloaded };

WEIR_ENUM_NAMES(OperatorState, "healthy", "pressured", "overloaded")

/// The bounds and caps of normal and low, from which the state of a scope is computed for a new
/// request of cost 1.
struct StateBounds {
  std::uint32_t normal_bound = 1;
  std::uint32_t normal_cap = 0;
  std::uint32_t low_bound = 1;
  std::uint32_t low_cap = 0;
};
[[nodiscard]] constexpr OperatorState operator_state(const ClassCounts& counts,
                                                     const StateBounds& at) noexcept {
  if (decide_class(counts, {Priority::kNormal}, at.normal_bound, at.normal_cap) !=
      Reason::kAdmitted) {
    return OperatorState::kOverloaded;
  }
  if (decide_class(counts, {Priority::kLow}, at.low_bound, at.low_cap) != Reason::kAdmitted) {
    return OperatorState::kPressured;
  }
  return OperatorState::kHealthy;
}

/// The same, computed from the rules and the limit in force.
[[nodiscard]] constexpr OperatorState operator_state(const ClassCounts& counts,
                                                     const ClassRules& rules,
                                                     std::uint32_t limit) noexcept {
  return operator_state(counts, {.normal_bound = share_bound(limit, rules.share_normal_permille),
                                 .normal_cap = rules.caps[index_of(Priority::kNormal)],
                                 .low_bound = share_bound(limit, rules.share_low_permille),
                                 .low_cap = rules.caps[index_of(Priority::kLow)]});
}

}  // namespace weir::inline v0::inline policy
