#pragma once

#include <CLI/CLI.hpp>

/// One file per subcommand. Each adds itself to the program; its callback sets the exit status.
namespace weir::app {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;      // the arguments were valid, but the operation failed
inline constexpr int kUsageError = 2;  // a wrong option or configuration

void add_run(CLI::App& program, int& status);
void add_demo(CLI::App& program, int& status);
void add_check(CLI::App& program, int& status);
void add_budget(CLI::App& program, int& status);
void add_replay(CLI::App& program, int& status);
void add_simulate(CLI::App& program, int& status);
void add_action(CLI::App& program, int& status);
void add_dashboard(CLI::App& program, int& status);
void add_top(CLI::App& program, int& status);
void add_probe(CLI::App& program, int& status);
/// These two describe the program itself, with the commands that it has when they run.
void add_completion(CLI::App& program, int& status);
void add_manual(CLI::App& program, int& status);

}  // namespace weir::app
