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

/// The environment variables whose names begin with WEIR_. Do not call it while another thread
/// changes the environment.
[[nodiscard]] Environment process_environment();

/// A configuration and all its errors. Use it only if it has no errors; otherwise a field whose
/// value was refused has its default.
struct LoadedConfig {
  Config config;
  ConfigErrors errors;
  ConfigErrors warnings;           // of config.warnings(), with file and line
  ConfigErrors unknown_variables;  // misspelt environment variables; warn about them too

  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Reads weir.toml, applies the environment variables, and validates the result.
///
/// Promises: any text gives a result, none throws; all errors are reported at once, each with file,
/// line, key, value and what is allowed; unknown keys and sections are errors that suggest the
/// nearest known name. `file` is used only in messages.
[[nodiscard]] LoadedConfig load_config(std::string_view toml, const std::string& file,
                                       const Environment& environment = {});

/// The same for a file on disk of at most 4 MiB; a file that cannot be read gives one error.
[[nodiscard]] LoadedConfig load_config_file(const std::string& path,
                                            const Environment& environment = {});

/// "weir.toml:12: admission.max_concurrent = 0: must be 1 to 16383"
[[nodiscard]] std::string to_text(const ConfigError& error);

}  // namespace weir::inline v0::config
