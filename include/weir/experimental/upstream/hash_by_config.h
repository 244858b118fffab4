#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::inline v0::upstream {

/// What the balance `hash` computes its key from.
struct HashBy {
  enum class Kind : std::uint8_t { kPath, kActor, kHeader };

  Kind kind = Kind::kPath;  // the path without its query
  std::string header;       // kHeader: the name of a request header, in lower case

  bool operator==(const HashBy&) const = default;
};

inline constexpr std::string_view kHashBySyntax = "path, actor or header:NAME";

/// Reads `hash_by`; nullopt if it is none of kHashBySyntax.
[[nodiscard]] inline std::optional<HashBy> parse_hash_by(std::string_view text) {
  constexpr std::string_view kHeader = "header:";
  constexpr std::string_view kToken = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
  if (text == "path") return HashBy{};
  if (text == "actor") return HashBy{.kind = HashBy::Kind::kActor, .header = {}};
  if (!text.starts_with(kHeader) || text.size() == kHeader.size()) return std::nullopt;
  HashBy by{.kind = HashBy::Kind::kHeader, .header = std::string(text.substr(kHeader.size()))};
  for (char& c : by.header) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (by.header.find_first_not_of(kToken) != std::string::npos) return std::nullopt;
  return by;
}

}  // namespace weir::inline v0::upstream
