#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "weir/base/config_error.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline policy {

/// The largest count of one class: a count has 14 bits of a word.
inline constexpr std::uint32_t kClassUnitsMax = (1U << 14U) - 1U;

/// What is in flight, per class, in units of cost. Critical is counted but never compared.
struct ClassCounts {
  std::array<std::uint32_t, kPriorityCount> units{};

  [[nodiscard]] constexpr std::uint32_t of(Priority p) const noexcept { return units[index_of(p)]; }
  [[nodiscard]] constexpr std::uint32_t sheddable() const noexcept {
    return of(Priority::kHigh) + of(Priority::kNormal) + of(Priority::kLow);
  }
};

/// Fixed caps per class (0 = none) and each class's share of the limit in force, in permille.
struct ClassRules {
  std::array<std::uint32_t, kPriorityCount> caps{};  // critical's entry must stay 0
  std::uint32_t share_high_permille = 1000;
  std::uint32_t share_normal_permille = 900;
  std::uint32_t share_low_permille = 750;
  std::uint32_t share_hedge_permille = 500;

  [[nodiscard]] constexpr std::uint32_t share_permille(Priority p, bool hedge) const noexcept {
    const std::uint32_t own = p == Priority::kHigh     ? share_high_permille
                              : p == Priority::kNormal ? share_normal_permille
                              : p == Priority::kLow    ? share_low_permille
                                                       : 1000U;
    return hedge ? std::min(own, share_hedge_permille) : own;
  }

  bool operator==(const ClassRules&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// The number of units up to which a class may fill the scope: ceil(share × limit), at least 1, so
/// that a limit of 1 still serves every class.
[[nodiscard]] constexpr std::uint32_t share_bound(std::uint32_t limit,
                                                  std::uint32_t permille) noexcept {
  const std::uint64_t product = std::uint64_t{limit} * permille;
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>((product + 999) / 1000));
}

/// One request as the class rules see it.
struct ClassRequest {
  Priority priority = Priority::kNormal;
  bool hedge = false;
  std::uint32_t cost = 1;
};

/// The cost that is charged. A request that costs more than its whole share is charged the share
/// and served alone; otherwise it would never be served.
[[nodiscard]] constexpr std::uint32_t charged_cost(std::uint32_t cost, std::uint32_t bound,
                                                   std::uint32_t cap) noexcept {
  const std::uint32_t ceiling = cap == 0 ? bound : std::min(bound, cap);
  return std::clamp<std::uint32_t>(cost, 1, std::max<std::uint32_t>(1, ceiling));
}

/// Whether the request would lift its class above its cap (0: none), or the scope above `bound`.
[[nodiscard]] constexpr bool over_class_cap(const ClassCounts& counts, const ClassRequest& request,
                                            std::uint32_t cap) noexcept {
  return cap != 0 && counts.of(request.priority) + request.cost > cap;
}
[[nodiscard]] constexpr bool over_bound(const ClassCounts& counts, const ClassRequest& request,
                                        std::uint32_t bound) noexcept {
  return counts.sheddable() + request.cost > bound;
}

/// Decides the class cap, then the share of the limit (`bound` = share_bound of this request).
///
/// Promises: total and pure; kCritical is always admitted; if `cost` is at most charged_cost(), an
/// admitted request never raises its class above its cap nor the scope above `bound`.
/// Cost: a few comparisons; it is called inside a compare-exchange loop.
[[nodiscard]] constexpr Reason decide_class(const ClassCounts& counts, const ClassRequest& request,
                                            std::uint32_t bound, std::uint32_t cap) noexcept {
  if (request.priority == Priority::kCritical) return Reason::kAdmitted;
  if (over_class_cap(counts, request, cap)) return Reason::kClassLimit;
  if (over_bound(counts, request, bound)) return Reason::kOverload;
  return Reason::kAdmitted;
}

}  // namespace weir::inline v0::inline policy
