#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weir/policy/class_admission.h"

namespace weir::inline v0 {

/// What an operator calls the state of a scope.
///   kHealthy     every class has room
///   kPressured   low is at its bound
///   kOverloaded  normal is at its bound; only high and critical get through
enum class OperatorState : std::uint8_t { kHealthy, kPressured, kOverloaded };

[[nodiscard]] constexpr std::string_view name_of(OperatorState state) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"healthy", "pressured", "overloaded"};
  return kNames[static_cast<std::size_t>(state)];
}

/// The state in which a newcomer of cost 1 would find the scope at this limit.
[[nodiscard]] constexpr OperatorState operator_state(const ClassCounts& counts,
                                                     const ClassRules& rules,
                                                     std::uint32_t limit) noexcept {
  const auto has_room = [&](Priority p) {
    return decide_class(counts, {p, false, 1}, share_bound(limit, rules.share_permille(p, false)),
                        rules.caps[index_of(p)]) == Reason::kAdmitted;
  };
  if (!has_room(Priority::kNormal)) return OperatorState::kOverloaded;
  if (!has_room(Priority::kLow)) return OperatorState::kPressured;
  return OperatorState::kHealthy;
}

}  // namespace weir::inline v0
