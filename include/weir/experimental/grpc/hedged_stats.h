#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.h"

namespace weir::inline v0::grpc {

/// One replica of a HedgedChannel at one moment.
struct HedgedReplicaStats {
  std::string target{};
  std::string health{};  // available, returning, ejected, draining
  bool connected = false;
  std::uint64_t sent = 0;  // attempts whose request was written
  std::uint32_t in_flight = 0;
  std::uint64_t queued = 0;  // attempts that wait for a place at this replica
  Duration median{};         // of the reads of the busiest method; zero: unknown
  Duration hedge_delay{};    // of that method, before the cap of the cohort
  std::uint32_t budget = 0;  // tokens for hedges and repeated calls that this replica causes
};

/// Numbers of a HedgedChannel.
///
/// calls = answered + failed + cancelled + in_flight; each hedge won, lost or failed.
struct HedgedStats {
  std::uint64_t calls = 0;      // accepted
  std::uint64_t refused = 0;    // not accepted
  std::uint64_t answered = 0;   // with the status of a replica
  std::uint64_t failed = 0;     // without: deadline, no replica
  std::uint64_t cancelled = 0;  // by the caller, or by close()
  std::uint64_t attempts = 0;   // whose request was written
  std::uint64_t hedges = 0;     // begun
  std::uint64_t hedges_won = 0;
  std::uint64_t hedges_lost = 0;
  std::uint64_t hedges_failed = 0;  // the call failed or was cancelled
  std::uint64_t retries = 0;        // attempts after a failure or a refusal
  std::uint64_t moved = 0;          // attempts that left a replica before they were written
  std::uint64_t losers_cancelled = 0;
  std::uint64_t losers_drained = 0;  // not cancelled, to stay below the limits of servers on resets
  std::uint32_t in_flight = 0;
  std::uint32_t budget = 0;  // tokens left for hedges and repeated calls
  bool overloaded = false;   // the replicas report overload: nothing is hedged
  /// Calls without a hedge, by policy::NoHedge: "not_needed", "budget", …
  std::vector<std::pair<std::string, std::uint64_t>> no_hedge{};
  std::vector<HedgedReplicaStats> replicas{};
};

}  // namespace weir::inline v0::grpc
