#include "io/shared_blocks.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir::inline v0 {

SharedBlocks::SharedBlocks(const Shape& shape)
    : capacity_(shape.count),
      reserved_(shape.reserved),
      cached_max_(std::min(shape.cached_max, kCacheCap)),
      pool_({.block_count = shape.count, .block_bytes = shape.bytes_each}),
      free_(shape.count),
      loops_(std::make_unique<PerLoop[]>(shape.loops)),
      loop_count_(shape.loops) {}

std::byte* SharedBlocks::acquire(std::uint32_t loop, Access access) noexcept {
  PerLoop& own = loops_[loop];
  const std::uint32_t cached = own.cached_count.load(std::memory_order_relaxed);
  if (cached > 0) {
    own.cached_count.store(cached - 1, std::memory_order_relaxed);
    return own.cached[cached - 1];
  }
  const std::lock_guard lock(mutex_);
  if (access == Access::kOrdinary && free_.load(std::memory_order_relaxed) <= reserved_) {
    ++refused_for_reserve_;
    return nullptr;
  }
  std::byte* block = pool_.acquire();
  if (block != nullptr) free_.fetch_sub(1, std::memory_order_relaxed);
  return block;
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

void SharedBlocks::give_back(std::byte* block) noexcept {
  pool_.release(block);
  free_.fetch_add(1, std::memory_order_relaxed);
  if (!wanted()) return;
  for (std::uint32_t i = 0; i < loop_count_; ++i) {
    PerLoop& next = loops_[(next_woken_ + i) % loop_count_];
    if (!next.waits) continue;
    next_woken_ = (next_woken_ + i + 1) % loop_count_;
    next.loop->post(*next.resume);
    return;
  }
}

void SharedBlocks::want(std::uint32_t loop, io::Loop& on, io::Task& resume) noexcept {
  const std::lock_guard lock(mutex_);
  PerLoop& own = loops_[loop];
  own.loop = &on;
  own.resume = &resume;
  if (!own.waits) waiting_.fetch_add(1, std::memory_order_relaxed);
  own.waits = true;
  // One may have come back between the refusal and this call.
  if (free_.load(std::memory_order_relaxed) > reserved_) on.post(resume);
}

void SharedBlocks::unwant(std::uint32_t loop) noexcept {
  const std::lock_guard lock(mutex_);
  if (!loops_[loop].waits) return;
  loops_[loop].waits = false;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
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
  std::uint64_t cached = 0;
  for (std::uint32_t i = 0; i < loop_count_; ++i) {
    cached += loops_[i].cached_count.load(std::memory_order_relaxed);
  }
  stats.used -= std::min(cached, stats.used);
  stats.exhausted += refused_for_reserve_;
  return stats;
}

}  // namespace weir::inline v0
