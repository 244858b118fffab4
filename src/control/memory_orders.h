#pragma once

#include <atomic>

namespace weir::inline v0::inline control {

/// Short names for the memory orders of the lock-free parts.
inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
inline constexpr auto kAcqRel = std::memory_order_acq_rel;

}  // namespace weir::inline v0::inline control
