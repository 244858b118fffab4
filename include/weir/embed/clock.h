#pragma once

#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::embed {

/// The time now, for every `now` of the library: monotonic, the same clock on every thread.
/// Cost: about 20 ns.
[[nodiscard]] TimePoint now() noexcept;

/// 64 bits of the system's randomness: the seed of an Rng.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace weir::inline v0::embed
