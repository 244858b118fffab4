#pragma once

#include <cstdint>

namespace weir::inline v0::io {

/// 64 bits of the system's randomness: the seed of the one Rng that a process forks all others
/// from.
[[nodiscard]] std::uint64_t random_seed() noexcept;

}  // namespace weir::inline v0::io
