#pragma once

#include <string>

namespace weir::inline v0::metrics {

/// docs/reference/metrics.md, made from metrics.def; a test fails when the committed file differs.
[[nodiscard]] std::string metrics_reference();

}  // namespace weir::inline v0::metrics
