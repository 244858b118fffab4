#pragma once

#include <string>

#include "weir/experimental/config/weir_config.h"

namespace weir::inline v0::config {

/// A complete weir.toml with every option at its default, each with a comment: what it does, its
/// range, and whether a reload is enough. Loading it gives a default Config.
/// [[upstream]] and [[route]], of which there are none by default, are shown commented out.
[[nodiscard]] std::string print_defaults();

/// A configuration as TOML without comments; loading it gives the same configuration.
[[nodiscard]] std::string print_config(const Config& config);

/// What decides about admission, as TOML: the numbers and modes of the rules, and the name and
/// limit of each upstream. Loading it gives a configuration that decides the same; nothing else of
/// the configuration is in it, and every upstream has the same invented address.
[[nodiscard]] std::string print_admission(const Config& config);

/// The JSON Schema of weir.toml, for editors: names, kinds, ranges, words, defaults. Only `weir
/// check` can check sizes and times that are written as text, and rules between several options.
[[nodiscard]] std::string print_schema();

}  // namespace weir::inline v0::config
