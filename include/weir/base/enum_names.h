#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

/// WEIR_ENUM_NAMES(Level, "low", "high") gives the enumerators of `Level`, which count from 0,
/// their names: kLevelNames holds them in order, name_of(level) is one of them, and names_of(level)
/// all. It stands in the namespace of the enum, which has exactly as many enumerators.
// NOLINTBEGIN(bugprone-macro-parentheses): `Enum` is a type
#define WEIR_ENUM_NAMES(Enum, ...)                                                       \
  inline constexpr auto k##Enum##Names = std::to_array<std::string_view>({__VA_ARGS__}); \
  [[nodiscard]] constexpr std::string_view name_of(Enum value) noexcept {                \
    return k##Enum##Names[static_cast<std::size_t>(value)];                              \
  }                                                                                      \
  [[nodiscard]] constexpr const auto& names_of(Enum /*any*/) noexcept {                  \
    return k##Enum##Names;                                                               \
  }
// NOLINTEND(bugprone-macro-parentheses)

namespace weir::inline v0 {

/// The enumerator with that name; nullopt if there is none.
template <class Enum>
[[nodiscard]] constexpr std::optional<Enum> named(std::string_view name) noexcept {
  const auto& names = names_of(Enum{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace weir::inline v0
