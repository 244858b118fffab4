#pragma once

#include <string>

namespace weir::inline v0::config {

/// docs/reference/options.md, made from options.def; a test fails when the committed file differs.
[[nodiscard]] std::string options_reference();

}  // namespace weir::inline v0::config
