#pragma once

#include <string_view>

namespace weir::inline v0::server {

/// A whole response of the server's own with "connection: close": a literal, so that it needs no
/// memory. Statuses it does not know become 400. Every 503 of the server has one reason: a place
/// (for a connection, a stream, a buffer) is missing.
[[nodiscard]] std::string_view canned_close(unsigned status) noexcept;

/// The overload answer on a connection that goes on.
[[nodiscard]] std::string_view canned_503_keep() noexcept;

}  // namespace weir::inline v0::server
