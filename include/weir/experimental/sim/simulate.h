#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace weir::inline v0::sim {

/// What `weir simulate` is asked to do.
struct SimulateOptions {
  std::vector<std::string> files{};        // scenarios, TOML
  std::vector<std::string> assignments{};  // --set key=value
  std::vector<std::string> compare{};      // limiters to put in each scenario's place
  std::string plot{};                      // write a picture there
  bool json = false;
  bool series = false;        // with json: the time series too
  bool search_fixed = false;  // look for the best fixed limit
};

/// What a program lends the simulator, which has no clock and no terminal of its own.
struct SimulateShell {
  std::ostream& out;
  std::ostream& err;
  std::function<double()> wall_seconds{};  // a monotonic clock; none: no speed, no progress
  bool progress = false;                   // err is a terminal: show a line on long runs
};

/// Runs scenarios and reports. Returns the exit status: 0 all verdicts hold, 1 one does not (which,
/// its value and the command that shows it again are in the report), 2 bad input (file, line, key
/// and allowed values are on `err`).
[[nodiscard]] int simulate(const SimulateOptions& options, const SimulateShell& shell);

}  // namespace weir::inline v0::sim
