#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "control/hedge_executor.h"

namespace weir::inline v0::upstream {

struct PoolEndpoint;

/// The endpoints that a call has not used, best first, as control::HedgeExecutor sees them.
///
/// Thread-safety: a value of one loop. Lifetime: valid within the turn in which it was made.
struct HedgeCandidates {
  static constexpr std::size_t kMax = control::HedgeExecutor::kCandidatesMax;

  std::array<control::HedgeCandidate, kMax> targets{};
  std::array<PoolEndpoint*, kMax> endpoints{};
  std::size_t count = 0;

  [[nodiscard]] std::span<const control::HedgeCandidate> span() const noexcept {
    return {targets.data(), count};
  }
};

}  // namespace weir::inline v0::upstream
