#pragma once

#include <string>

#include "run.h"
#include "scenario.h"

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

}  // namespace weir::inline v0::sim
