#pragma once

#include <string>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// A run as a diagram over time: offered load and goodput per class, shed requests, latency
/// percentiles, and per service its limit and in flight, with faults marked.
[[nodiscard]] std::string plot_svg(const Scenario& scenario, const RunResult& result);

}  // namespace weir::inline v0::sim
