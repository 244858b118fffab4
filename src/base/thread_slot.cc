#include "weir/base/thread_slot.h"

#include <bit>

namespace weir::inline v0 {

namespace {

constinit std::atomic<std::uint32_t> free_slots{(std::uint32_t{1} << kSharedSlot) - 1};

/// Gives the slot back when its thread ends. Statistics written after that (by destructors of
/// other thread-locals) go to the shared slot.
struct SlotLease {
  std::uint32_t slot = kSharedSlot;
  SlotLease() = default;
  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;
  ~SlotLease() {
    thread_slot_detail::cached = kSharedSlot;
    if (slot != kSharedSlot) {
      free_slots.fetch_or(std::uint32_t{1} << slot, std::memory_order_release);
    }
  }
};

}  // namespace

std::uint32_t thread_slot_detail::claim() noexcept {
  static thread_local SlotLease lease;
  std::uint32_t free = free_slots.load(std::memory_order_relaxed);
  while (free != 0) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
    const std::uint32_t without = free & ~(std::uint32_t{1} << slot);
    if (free_slots.compare_exchange_weak(free, without, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      lease.slot = slot;
      break;
    }
  }
  cached = lease.slot;
  return cached;
}

}  // namespace weir::inline v0
