#pragma once

#include <optional>
#include <string_view>

namespace weir::inline v0::gateway {

[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The byte that `text` begins with, if it is percent-encoded: 'r' for "%72eports".
[[nodiscard]] constexpr std::optional<char> percent_code(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  const int high = hex_value(text[1]);
  const int low = hex_value(text[2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

/// Characters that mean the same if they are encoded (RFC 3986 §2.3).
[[nodiscard]] constexpr bool is_unreserved(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace weir::inline v0::gateway
