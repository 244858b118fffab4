#pragma once

#include <string>
#include <vector>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// One run as JSON. All but `run` (wall time and speed) is the same on every machine.
/// With `series`, the time series too.
[[nodiscard]] std::string json_report(const Scenario& scenario, const RunResult& result,
                                      bool series);

/// Joins JSON texts into one list.
[[nodiscard]] std::string json_list(const std::vector<std::string>& items);

}  // namespace weir::inline v0::sim
