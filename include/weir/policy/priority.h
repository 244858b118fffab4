#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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

/// The stable name, used in headers, metrics and configuration.
[[nodiscard]] constexpr std::string_view name_of(Priority p) noexcept {
  constexpr std::array<std::string_view, kPriorityCount> kNames = {"critical", "high", "normal",
                                                                   "low"};
  return kNames[index_of(p)];
}

/// The class with that name, or nullopt. Callers treat nullopt as normal.
[[nodiscard]] constexpr std::optional<Priority> priority_named(std::string_view name) noexcept {
  for (const Priority p : kPriorities) {
    if (name == name_of(p)) return p;
  }
  return std::nullopt;
}

}  // namespace weir::inline v0::inline policy
