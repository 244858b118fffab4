#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::inline v0::inline server {

inline constexpr std::size_t kHttpDateBytes = 29;

/// "Sun, 06 Nov 1994 08:49:37 GMT" for seconds since 1970.
void write_http_date(std::int64_t unix_seconds, std::span<char, kHttpDateBytes> into) noexcept;

}  // namespace weir::inline v0::inline server
