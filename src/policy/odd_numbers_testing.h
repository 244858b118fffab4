#pragma once

#include <limits>

namespace weir::inline v0::inline policy {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace weir::inline v0::inline policy
