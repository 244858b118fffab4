#pragma once

#include <span>
#include <string_view>

namespace weir::inline v0::dashboard {

/// One file of the web dashboard, as it was when the program was built.
struct Asset {
  std::string_view name;          // "index.html"
  std::string_view content_type;  // with its charset
  std::string_view hash;          // of the content, as hexadecimal digits
  std::string_view content;
  std::string_view gzip;  // the same, compressed
};

/// All of them, by name; none if the program was built with WEIR_DASHBOARD=OFF.
/// Thread-safety: pure; the bytes live as long as the process.
[[nodiscard]] std::span<const Asset> assets() noexcept;

/// nullptr: there is no such file.
[[nodiscard]] const Asset* find_asset(std::string_view name) noexcept;

}  // namespace weir::inline v0::dashboard
