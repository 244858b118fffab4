#pragma once

#include <CLI/CLI.hpp>

namespace weir::app {

/// Each subcommand lives in its own file and adds itself to the program here. When the command line
/// selects it, it runs and leaves its exit status in `status`.
void add_simulate(CLI::App& program, int& status);

}  // namespace weir::app
