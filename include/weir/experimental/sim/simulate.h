#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace weir::inline v0::sim {

/// The command line of `weir simulate`.
struct SimulateOptions {
  std::vector<std::string> files{};        // scenarios, TOML; or one folder: it is listed
  std::vector<std::string> assignments{};  // --set key=value
  std::vector<std::string> compare{};      // limiters to use in place of each scenario's own
  std::string plot{};                      // write a diagram to this file
  unsigned seeds = 0;  // run each scenario with this many seeds, its own first; 0: with its own
  bool json = false;
  bool series = false;        // with json: the time series too
  bool search_fixed = false;  // search for the best fixed limit, per phase if there are any
};

/// What the program provides to the simulator, which has no access to a clock or a terminal.
struct SimulateShell {
  std::ostream& out;
  std::ostream& err;
  std::function<double()> wall_seconds{};  // a monotonic clock; unset: no speed, no progress
  bool progress = false;                   // err is a terminal: show a progress line on long runs
};

/// Runs scenarios and prints reports. Returns the exit status: 0 if all verdicts hold; 1 if one
/// does not (the report has its name, its value and the command that reproduces it); 2 for bad
/// input (`err` has file, line, key and allowed values).
[[nodiscard]] int simulate(const SimulateOptions& options, const SimulateShell& shell);

}  // namespace weir::inline v0::sim
