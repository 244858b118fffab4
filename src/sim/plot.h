#pragma once

#include <string>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// A run as a picture: offered and goodput per class, what was shed, latency percentiles, and per
/// service its limit and what is in flight, over time, with its faults marked.
[[nodiscard]] std::string plot_svg(const Scenario& scenario, const RunResult& result);

}  // namespace weir::inline v0::sim
