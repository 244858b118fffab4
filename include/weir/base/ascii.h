#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::inline v0 {

// Text of protocols and configurations: only ASCII letters have a case.

[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

/// `text` without spaces and tabs around it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

}  // namespace weir::inline v0
