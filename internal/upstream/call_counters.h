#pragma once

#include <array>

#include "weir/base/owned_count.h"
#include "weir/experimental/metrics/histogram.h"

#include "policy/hedge_decision.h"
#include "policy/loser_end.h"
#include "policy/send_again.h"

namespace weir::inline v0::upstream {

/// What one loop counted for the calls of one upstream. Written by that loop only; readers add the
/// loops up.
struct alignas(64) CallCounters {
  /// Attempts that failed, by what was decided about another one (policy::SendAgainReason).
  std::array<OwnedCount, policy::kSendAgainReasonCount> decisions;
  OwnedCount budget_empty;   // another attempt was allowed, but the budget had no token
  OwnedCount held;           // calls that waited for an endpoint
  OwnedCount hedges;         // sent
  OwnedCount hedges_won;     // of calls with a hedge: the hedge answered
  OwnedCount hedges_lost;    // another attempt did
  OwnedCount hedges_failed;  // no attempt did
  /// Calls without a hedge, by the reason.
  std::array<OwnedCount, policy::kNoHedgeCount> no_hedge;
  /// Attempts that lost, by how they were ended on the wire.
  std::array<OwnedCount, policy::kLoserEndNames.size()> losers;
  OwnedCount loser_ns;         // from when their request was sent until they were ended
  OwnedCount discarded_bytes;  // of answers that nobody needs any more
  metrics::Histogram hedge_delay{metrics::kDurationBoundsSeconds};  // in force when a read was sent
  metrics::Histogram hedge_saved{metrics::kDurationBoundsSeconds};  // see LoserWatch
};

}  // namespace weir::inline v0::upstream
