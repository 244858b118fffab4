#pragma once

#include <string>

namespace weir::inline v0::config {

/// docs/reference/options.md, generated from options.def; a test compares it with the file.
[[nodiscard]] std::string options_reference();

}  // namespace weir::inline v0::config
