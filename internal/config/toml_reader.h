#pragma once

#include <string>
#include <string_view>

#include "config/raw_config.h"

namespace weir::inline v0::config {

/// Reads TOML text into sections and entries with their lines. Any bytes give a RawConfig; invalid
/// TOML gives its syntax error instead. `file` is the name used in errors.
///
/// Its source is the only one that includes the TOML library.
[[nodiscard]] RawConfig read_toml(std::string_view text, const std::string& file);

}  // namespace weir::inline v0::config
