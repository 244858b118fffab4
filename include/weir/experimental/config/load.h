#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/experimental/config/weir_config.h"

namespace weir::inline v0::config {

struct EnvironmentVariable {
  std::string name;
  std::string value;
};
using Environment = std::vector<EnvironmentVariable>;

/// The variables of this process whose names begin with WEIR_. Not while another thread changes
/// them.
[[nodiscard]] Environment process_environment();

/// A configuration, and everything that is wrong with it. Only a configuration without errors may
/// be used; with errors it holds the defaults wherever a value could not be taken.
struct LoadedConfig {
  Config config;
  ConfigErrors errors;
  ConfigErrors warnings;           // of config.warnings(), with their places
  ConfigErrors unknown_variables;  // of the environment, misspelt it seems; also to be warned of

  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Reads weir.toml, then lets the environment override it, then validates.
///
/// Promises: total: any text gives a result, none throws; all faults are reported at once, each
/// with file, line, key, value and what is allowed; keys and sections that are not in the table
/// are errors, and name the nearest known one. `file` is only a name for messages.
[[nodiscard]] LoadedConfig load_config(std::string_view toml, const std::string& file,
                                       const Environment& environment = {});

/// The same for a file on disk; one that cannot be read is one error. At most 4 MiB.
[[nodiscard]] LoadedConfig load_config_file(const std::string& path,
                                            const Environment& environment = {});

/// "weir.toml:12: admission.max_concurrent = 0: must be 1 to 16383"
[[nodiscard]] std::string to_text(const ConfigError& error);

}  // namespace weir::inline v0::config
