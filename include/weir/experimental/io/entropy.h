#pragma once

#include <cstdint>

namespace weir::inline v0::io {

/// 64 bits of the system's randomness: the seed of a process's first Rng, from which all others are
/// forked.
[[nodiscard]] std::uint64_t random_seed() noexcept;

}  // namespace weir::inline v0::io
