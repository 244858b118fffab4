#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace weir::inline v0::upstream {

/// What an operator says about an endpoint, beside its address: "weight=2 zone=b drain=true".
///
/// Thread-safety: a value.
struct EndpointAttributes {
  static constexpr std::uint32_t kWeightMax = 65535;
  static constexpr std::size_t kZoneBytesMax = 64;

  std::uint32_t weight = 1;  // its part of the requests, beside that of the others
  std::string zone;          // where it is
  bool draining = false;     // no new requests

  bool operator==(const EndpointAttributes&) const = default;

  /// Sets one of them from "key=value". Returns what is wrong with it; empty: it was set.
  [[nodiscard]] std::string set(std::string_view word);
  /// " weight=2 zone=b drain=true", without those that have their default.
  [[nodiscard]] std::string to_string() const;
};

/// The next word of a line, which is removed from it; empty at its end.
[[nodiscard]] inline std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

[[nodiscard]] inline bool is_zone(std::string_view text) {
  return text.size() <= EndpointAttributes::kZoneBytesMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < '\x7F' && c != '"'; });
}

inline std::string EndpointAttributes::set(std::string_view word) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  const auto wrong = [&](const std::string& allowed) {
    return std::string(word) + ": allowed " + allowed;
  };
  if (key == "weight" && equals < word.size()) {
    const char* const end = value.data() + value.size();
    std::uint32_t given = 0;
    const auto [at, error] = std::from_chars(value.data(), end, given);
    if (error != std::errc() || at != end || given < 1 || given > kWeightMax) {
      return wrong("is 1 to " + std::to_string(kWeightMax));
    }
    weight = given;
  } else if (key == "zone" && equals < word.size()) {
    if (value.empty() || !is_zone(value)) {
      return wrong("are 1 to " + std::to_string(kZoneBytesMax) + " printable characters");
    }
    zone = value;
  } else if (key == "drain" && equals < word.size()) {
    if (value != "true" && value != "false") return wrong("are true and false");
    draining = value == "true";
  } else {
    return '"' + std::string(key) + "\": allowed are weight=N, zone=Z and drain=true";
  }
  return {};
}

inline std::string EndpointAttributes::to_string() const {
  std::string text;
  if (weight != 1) text += " weight=" + std::to_string(weight);
  if (!zone.empty()) text += " zone=" + zone;
  if (draining) text += " drain=true";
  return text;
}

}  // namespace weir::inline v0::upstream
