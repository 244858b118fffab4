#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace weir::inline v0::gateway {

/// How a server may read a path. Which way the service behind us reads is unknown, so a path
/// selects a route only if all readings select routes that treat the request alike.
///
/// In every reading codes of unreserved characters are decoded ("%72" is "r"). The resolved ones
/// also drop empty and "." segments and let ".." take back the segment before.
struct PathReading {
  bool resolved = false;
  bool parameters_dropped = false;  // ";…" at the end of a segment, before codes are decoded (Java)
  bool decoded = false;             // "%2f" separates segments (nginx)
  bool backslash_is_slash = false;  // (browsers' URL rules, IIS)
};

/// The first is the path as it is written.
inline constexpr std::array<PathReading, 9> kPathReadings = [] {
  std::array<PathReading, 9> all{};
  for (unsigned i = 0; i < 8; ++i) {
    all[i + 1] = {.resolved = true,
                  .parameters_dropped = (i & 1U) != 0,
                  .decoded = (i & 2U) != 0,
                  .backslash_is_slash = (i & 4U) != 0};
  }
  return all;
}();

/// Whether all readings of `path` are the path itself. Cost: one pass.
[[nodiscard]] bool is_plain_path(std::string_view path) noexcept;

/// Whether all servers find the same segments in `path` (or in its end, from a slash on): codes in
/// them, "%20", are then decoded by all or belong to a name. So it has no empty and no dot segment,
/// no parameter, no backslash, no encoded separator; "..%3B" is one of the dot segments too, since
/// some servers decode before they look for parameters. Cost: one pass.
[[nodiscard]] bool has_one_reading(std::string_view path) noexcept;

/// `path` (without its query) as `reading` has it, in `out`, which is at least as long as `path`.
/// Cost: one pass; `..` goes back to the segment before.
[[nodiscard]] std::string_view read_path(std::string_view path, const PathReading& reading,
                                         std::span<char> out) noexcept;

}  // namespace weir::inline v0::gateway
