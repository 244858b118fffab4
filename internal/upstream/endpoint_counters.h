#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/owned_count.h"
#include "weir/base/time.h"

#include "upstream/failure.h"
#include "upstream/latency_counts.h"

namespace weir::inline v0::upstream {

/// How an attempt ended; a label of metrics.
enum class AttemptOutcome : std::uint8_t {
  kOk,         // a complete answer below 500
  kError,      // an answer of 500 or above
  kFailed,     // no complete answer
  kCancelled,  // by our side: the client left, a deadline passed
};
WEIR_ENUM_NAMES(AttemptOutcome, "ok", "error", "failed", "cancelled")

/// What one loop counted for one endpoint. Written by that loop only; readers add the loops up.
struct alignas(64) EndpointCounters {
  OwnedCount attempts;
  OwnedCount retries;  // attempts after a failed one
  OwnedCount hedges;   // attempts beside another one that was late
  OwnedCount hedge_wins;
  OwnedCount answered;
  std::array<OwnedCount, kAttemptOutcomeNames.size()> ended;  // by AttemptOutcome
  OwnedCount connects;
  OwnedCount strays;  // idle connections closed because bytes came without a request
  std::array<OwnedCount, kUpstreamFailureCount> failures;
  // Gauges.
  OwnedCount connections;
  OwnedCount connecting;
  OwnedCount idle;
  /// When the oldest attempt that is sent and unanswered was sent; 0: there is none.
  std::atomic<std::int64_t> oldest_unanswered_ns{0};
  LatencyCounts latency;  // from the last request byte sent to the response head
};

}  // namespace weir::inline v0::upstream
