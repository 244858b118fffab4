#pragma once

#include <string>
#include <vector>

#include "line.h"

/// Drawings of block signs. Pure; values below 0 count as 0.
namespace weir::app::top {

/// One cell per value, `height` rows, full height at `top`. A value above 0 is always seen.
[[nodiscard]] Block columns(const std::vector<double>& values, double top, int height, Style style);

/// "[#######   ]": `width` cells with brackets, filled to `share`, `inside` written at the right.
[[nodiscard]] std::string gauge(double share, int width, const std::string& inside = {});

/// `values` in at most `width` cells: the last ones, or with `whole` all of them, the largest of
/// each group.
[[nodiscard]] std::vector<double> squeezed(const std::vector<double>& values, int width,
                                           bool whole);

}  // namespace weir::app::top
