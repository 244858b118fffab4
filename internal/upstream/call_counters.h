#pragma once

#include <array>

#include "weir/base/owned_count.h"

#include "policy/send_again.h"

namespace weir::inline v0::upstream {

/// What one loop counted for the calls of one upstream. Written by that loop only; readers add the
/// loops up.
struct alignas(64) CallCounters {
  /// Attempts that failed, by what was decided about another one (policy::SendAgainReason).
  std::array<OwnedCount, policy::kSendAgainReasonCount> decisions;
  OwnedCount budget_empty;  // another attempt was allowed, but the budget had no token
  OwnedCount held;          // calls that waited for an endpoint
};

}  // namespace weir::inline v0::upstream
