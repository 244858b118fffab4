#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/enum_names.h"

namespace weir::inline v0::inline policy {

/// How important a request is. Lower values are more important; kCritical is never refused.
///   kCritical  health probes, leader election, failure detection: set only by trusted peers or by
///              configuration
///   kHigh      requests that a person waits for
///   kNormal    everything else, also requests with no class or an unknown class
///   kLow       background work: shed first
enum class Priority : std::uint8_t { kCritical = 0, kHigh = 1, kNormal = 2, kLow = 3 };

inline constexpr std::size_t kPriorityCount = 4;
inline constexpr std::array<Priority, kPriorityCount> kPriorities = {
    Priority::kCritical, Priority::kHigh, Priority::kNormal, Priority::kLow};

[[nodiscard]] constexpr std::size_t index_of(Priority p) noexcept {
  return static_cast<std::size_t>(p);
}

WEIR_ENUM_NAMES(Priority, "critical", "high", "normal", "low")

/// The class with that name, or nullopt. Callers treat nullopt as normal.
[[nodiscard]] constexpr std::optional<Priority> priority_named(std::string_view name) noexcept {
  return named<Priority>(name);
}

}  // namespace weir::inline v0::inline policy
