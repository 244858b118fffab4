#include "io/shared_blocks.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir::inline v0::io {

SharedBlocks::SharedBlocks(const Shape& shape)
    : capacity_(shape.count),
      reserved_(shape.reserved),
      cached_max_(std::min(shape.cached_max, kCacheCap)),
      pool_({.block_count = shape.count, .block_bytes = shape.bytes_each}),
      free_(shape.count),
      loops_(std::make_unique<PerLoop[]>(shape.loops)),
      loop_count_(shape.loops) {
  for (std::uint32_t i = 0; i < loop_count_; ++i) {
    loops_[i].handed = Ring<std::byte*>(shape.count);
  }
}

void SharedBlocks::attach(std::uint32_t loop, io::Loop& on, io::Task& handed) noexcept {
  const std::lock_guard lock(mutex_);
  loops_[loop].loop = &on;
  loops_[loop].task = &handed;
}

std::byte* SharedBlocks::take_free() noexcept {
  std::byte* block = pool_.acquire();
  if (block != nullptr) free_.fetch_sub(1, std::memory_order_relaxed);
  return block;
}

std::byte* SharedBlocks::acquire(std::uint32_t loop, Access access) noexcept {
  PerLoop& own = loops_[loop];
  const std::uint32_t cached = own.cached_count.load(std::memory_order_relaxed);
  if (cached > 0) {
    own.cached_count.store(cached - 1, std::memory_order_relaxed);
    return own.cached[cached - 1];
  }
  const std::lock_guard lock(mutex_);
  if (access == Access::kOrdinary && free_count() <= reserved_) {
    ++refused_for_reserve_;
    return nullptr;
  }
  return take_free();
}

void SharedBlocks::release(std::uint32_t loop, std::byte* block) noexcept {
  PerLoop& own = loops_[loop];
  const std::uint32_t cached = own.cached_count.load(std::memory_order_relaxed);
  if (cached < cached_max_ && !wanted() && free_count() > reserved_) {
    own.cached[cached] = block;
    own.cached_count.store(cached + 1, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard lock(mutex_);
  give_back(block);
}

/// The loop to serve next: each loop gains credit equal to its number of waiters; of the loops that
/// have fewer blocks than waiters, the one with the most credit is served and pays the sum of all
/// gains. The others keep their credit, up to kTurnsOwed turns, so that a loop whose thread takes
/// its blocks late does not lose its share.
SharedBlocks::PerLoop* SharedBlocks::next_waiting() noexcept {
  constexpr std::int64_t kTurnsOwed = 32;
  PerLoop* richest = nullptr;
  std::int64_t all = 0;
  const auto after = [](const PerLoop& loop) { return loop.credit + loop.waiting; };
  for (std::uint32_t i = 0; i < loop_count_; ++i) {
    PerLoop& next = loops_[i];
    all += next.waiting;
    if (next.handed.size() >= next.waiting) continue;
    if (richest == nullptr || after(next) > after(*richest)) richest = &next;
  }
  if (richest == nullptr) return nullptr;
  for (std::uint32_t i = 0; i < loop_count_; ++i) {
    loops_[i].credit = std::min(after(loops_[i]), kTurnsOwed * all);
  }
  richest->credit = std::max(richest->credit - all, -kTurnsOwed * all);
  return richest;
}

void SharedBlocks::give_back(std::byte* block) noexcept {
  // The reserve is refilled before ordinary waiters are served.
  PerLoop* next = wanted() && free_count() >= reserved_ ? next_waiting() : nullptr;
  if (next != nullptr) {
    const bool kept = next->handed.push_back(block);
    WEIR_ASSERT(kept);  // it has room for all blocks
    ++handed_count_;
    next->loop->post(*next->task);
    return;
  }
  pool_.release(block);
  free_.fetch_add(1, std::memory_order_relaxed);
}

void SharedBlocks::set_waiting(std::uint32_t loop, std::uint32_t askers) noexcept {
  const std::lock_guard lock(mutex_);
  PerLoop& own = loops_[loop];
  waiting_.fetch_add(askers - own.waiting, std::memory_order_relaxed);  // may wrap around
  own.waiting = askers;
  if (askers == 0) own.credit = 0;
  while (own.handed.size() > askers) {
    std::byte* unwanted = own.handed.pop_front();
    --handed_count_;
    give_back(unwanted);
  }
  // Blocks may have been released between the refusal and this call.
  while (own.handed.size() < askers && free_count() > reserved_) {
    const bool kept = own.handed.push_back(take_free());
    WEIR_ASSERT(kept);
    ++handed_count_;
    own.loop->post(*own.task);
  }
}

std::byte* SharedBlocks::take_handed(std::uint32_t loop) noexcept {
  const std::lock_guard lock(mutex_);
  PerLoop& own = loops_[loop];
  if (own.handed.empty()) return nullptr;
  --handed_count_;
  return own.handed.pop_front();
}

void SharedBlocks::flush(std::uint32_t loop) noexcept {
  PerLoop& own = loops_[loop];
  const std::uint32_t cached = own.cached_count.exchange(0, std::memory_order_relaxed);
  if (cached == 0) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < cached; ++i) give_back(own.cached[i]);
}

std::uint32_t SharedBlocks::trim(std::uint32_t blocks_max) noexcept {
  const std::lock_guard lock(mutex_);
  return pool_.trim(blocks_max);
}

PoolStats SharedBlocks::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  PoolStats stats = pool_.stats();
  std::uint64_t unused = handed_count_;
  for (std::uint32_t i = 0; i < loop_count_; ++i) {
    unused += loops_[i].cached_count.load(std::memory_order_relaxed);
  }
  stats.used -= std::min(unused, stats.used);
  stats.exhausted += refused_for_reserve_;
  return stats;
}

}  // namespace weir::inline v0::io
