#pragma once

#include <string>

namespace weir::inline v0::metrics {

/// docs/reference/metrics.md, generated from metrics.def; a test compares it with the file.
[[nodiscard]] std::string metrics_reference();

}  // namespace weir::inline v0::metrics
