#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::io {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// Thread-safety: any thread. Cost: below a microsecond for short texts; the first call of a thread
/// allocates.
[[nodiscard]] Sha256Digest sha256(std::string_view text) noexcept;

}  // namespace weir::inline v0::io
