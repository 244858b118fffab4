#pragma once

#include <string>
#include <vector>

#include "run.h"
#include "scenario.h"

// A run as text, as JSON and as a diagram.

namespace weir::inline v0::sim {

/// A run as text for people: the description, one line per load, service and verdict; for each
/// verdict that fails, the measured value and the command that reproduces it. Deterministic:
/// nothing in it depends on the machine.
[[nodiscard]] std::string text_report(const Scenario& scenario, const RunResult& result,
                                      const std::string& reproduce);

/// "1598.2/s", "0.994", "44.1 ms": a value in the unit of its measure.
[[nodiscard]] std::string printed(const VerdictSpec& verdict, double value);
/// "goodput ≥ 1500/s of web from 10s"
[[nodiscard]] std::string described(const Scenario& scenario, const VerdictSpec& verdict);

/// One run as JSON. All but `run` (wall time and speed) is the same on every machine.
/// With `series`, the time series too.
[[nodiscard]] std::string json_report(const Scenario& scenario, const RunResult& result,
                                      bool series);
/// Joins JSON texts into one list.
[[nodiscard]] std::string json_list(const std::vector<std::string>& items);

/// A run as a diagram over time (SVG): offered load and goodput per class, shed requests, latency
/// percentiles, and per service its limit and in flight, with faults marked.
[[nodiscard]] std::string plot_svg(const Scenario& scenario, const RunResult& result);

}  // namespace weir::inline v0::sim
