#pragma once

#include <cstdint>

#include "weir/base/time.h"

#include "distribution.h"
#include "recorded_load.h"

namespace weir::inline v0::sim {

/// What a recording says about the service behind the gateway, as the simulator models one: workers
/// and the time that each request takes.
///
///   service time  latencies while little was in flight ("quiet")
///   workers       the most that the service answered per second × the mean service time (Little's
///                 law), if it was saturated: with more in flight it answered no more, only later
struct ServiceFit {
  Distribution time{};
  Duration mean{};
  std::uint32_t workers = 0;  // if it was not saturated: the most that it was seen to serve at once
  bool saturated = false;     // false: the capacity is unknown, at least `workers`
  double drain_max = 0;       // answers per second
  std::uint64_t samples = 0;  // quiet requests
};

/// Deterministic. Cost: a few passes over the decisions.
[[nodiscard]] ServiceFit fit_service(const RecordedLoad& load);

}  // namespace weir::inline v0::sim
