#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// What the program takes, read from its own command-line parser: completions and the man page are
/// made from this, so neither can name an option that is not there.
namespace weir::app {

struct OptionFacts {
  std::vector<std::string> names;  // "-c", "--config"; none if it has only a place
  std::string value;               // "FILE", "TEXT"; empty for a flag
  std::vector<std::string> words;  // the only values that are allowed; empty: any
  std::string help;
  bool required = false;
  bool repeats = false;
  bool positional = false;  // can be given without a name

  [[nodiscard]] bool is_file() const { return value == "FILE"; }
};

struct CommandFacts {
  std::string name;
  std::string help;
  std::string footer;
  std::vector<OptionFacts> options;
};

/// The options of one command, or those of the program itself.
[[nodiscard]] CommandFacts facts_of(const CLI::App& command);

/// The commands that `weir --help` shows, in its order.
[[nodiscard]] std::vector<CommandFacts> commands_of(const CLI::App& program);

}  // namespace weir::app
