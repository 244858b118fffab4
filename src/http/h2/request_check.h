#pragma once

#include <string_view>

#include "weir/experimental/http/method.h"

#include "http/h2/client_session.h"

namespace weir::inline v0::http::h2 {

[[nodiscard]] bool is_valid_method(std::string_view method) noexcept;

/// A path with its query, or "*" for OPTIONS, with only the bytes that a target may have.
[[nodiscard]] bool is_valid_path(Method method, std::string_view path) noexcept;

/// Whether a request may be sent: pseudo-headers of a usual request (RFC 9113 §8.3.1), and no field
/// whose meaning they replace.
[[nodiscard]] bool may_be_requested(const RequestStart& start) noexcept;

}  // namespace weir::inline v0::http::h2
