#pragma once

#include <string_view>

namespace weir::inline v0::gateway {

/// "0.1.0"
[[nodiscard]] std::string_view version() noexcept;

}  // namespace weir::inline v0::gateway
