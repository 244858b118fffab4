#pragma once

#include <string_view>

namespace weir::inline v0::inline server {

/// A fixed response of the server with "connection: close": a literal, so it needs no memory. An
/// unknown status becomes 400. Every 503 of the server has the same reason: no place is free (for a
/// connection, a stream or a buffer).
[[nodiscard]] std::string_view canned_close(unsigned status) noexcept;

/// The overload answer on a connection that stays open.
[[nodiscard]] std::string_view canned_503_keep() noexcept;

}  // namespace weir::inline v0::inline server
