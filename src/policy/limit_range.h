#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/policy/limit_policy.h"

namespace weir::inline v0::inline policy {

/// The lowest value of a limit: min, or initial if that is lower, and never 0, because a limit of 0
/// gets no samples and could never grow.
[[nodiscard]] constexpr std::uint32_t lowest(const LimitBounds& bounds) noexcept {
  return std::max<std::uint32_t>(1, std::min(bounds.min, bounds.initial));
}

/// The nearest limit that the bounds allow; if they cross, the floor applies.
[[nodiscard]] constexpr std::uint32_t in_bounds(std::uint32_t limit,
                                                const LimitBounds& bounds) noexcept {
  return std::max(lowest(bounds), std::min(limit, bounds.max));
}

}  // namespace weir::inline v0::inline policy
