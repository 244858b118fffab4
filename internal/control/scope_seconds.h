#pragma once

#include <cstdint>
#include <span>

#include "weir/control/admission_stats.h"

#include "policy/diagnosis.h"

namespace weir::inline v0::inline control {

/// What a diagnosis needs to know of the endpoints of a scope; all 0 if there is only one.
struct ReplicaSpread {
  std::uint32_t replicas = 0;
  std::uint32_t open = 0;
  double worst = 0;  // latency of the slowest, divided by the median; 0: unknown
};

/// Turns the counters of a scope, which only grow, into what happened in each second.
///
/// Thread-safety: none. Cost: O(actors), no allocation.
class ScopeSeconds {
 public:
  /// What happened since the call before; `passed` is the time since then. The first call compares
  /// with a scope that has counted nothing. `refused_own` are refusals by bounds of the gateway
  /// since the start, `actors` the actors that hold the most.
  [[nodiscard]] policy::ScopeSecond next(const ScopeStats& stats, Duration passed,
                                         std::uint64_t refused_own,
                                         std::span<const BudgetRow> actors,
                                         const ReplicaSpread& spread) noexcept;

 private:
  struct Totals {
    std::uint64_t offered = 0;
    std::uint64_t limit = 0;
    std::uint64_t client = 0;
    std::uint64_t memory = 0;
    std::uint64_t own = 0;
    std::uint64_t failed = 0;
    std::uint64_t samples = 0;
    Duration latency{};
  };
  [[nodiscard]] static Totals totals_of(const ScopeStats& stats, std::uint64_t own) noexcept;

  Totals before_{};
};

}  // namespace weir::inline v0::inline control
