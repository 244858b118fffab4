#pragma once

#include <atomic>
#include <cstdint>

namespace weir::inline v0 {

/// The number of slots for statistics. Each slot except the last belongs to one live thread; all
/// further threads share the last.
inline constexpr std::uint32_t kThreadSlots = 32;
inline constexpr std::uint32_t kSharedSlot = kThreadSlots - 1;

namespace thread_slot_detail {
inline constexpr std::uint32_t kUnclaimed = kThreadSlots;
inline constinit thread_local std::uint32_t cached = kUnclaimed;
std::uint32_t claim() noexcept;
}  // namespace thread_slot_detail

/// The calling thread's slot in [0, kThreadSlots). It is released when the thread ends, and its
/// next owner sees everything that this thread wrote.
/// Cost: a thread-local read after the first call.
[[nodiscard]] inline std::uint32_t this_thread_slot() noexcept {
  const std::uint32_t slot = thread_slot_detail::cached;
  return slot != thread_slot_detail::kUnclaimed ? slot : thread_slot_detail::claim();
}

/// Adds to a counter of the calling thread's slot. An exclusive slot has one writer, so a plain
/// read and write are enough (no locked instruction); the shared slot needs an atomic addition.
/// Readers on other threads see a value that only grows.
template <class T>
void slot_add(std::atomic<T>& counter, T delta, std::uint32_t slot) noexcept {
  if (slot != kSharedSlot) {
    counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + delta),
                  std::memory_order_relaxed);
  } else {
    counter.fetch_add(delta, std::memory_order_relaxed);
  }
}

}  // namespace weir::inline v0
