#pragma once

#include <string>
#include <vector>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// One run for machines. All but `run` (wall time and speed) is the same on every machine.
/// With `series`, the time series too.
[[nodiscard]] std::string json_report(const Scenario& scenario, const RunResult& result,
                                      bool series);

/// A list of JSON texts as one.
[[nodiscard]] std::string json_list(const std::vector<std::string>& items);

}  // namespace weir::inline v0::sim
