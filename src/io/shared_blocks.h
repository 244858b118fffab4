#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "weir/base/block_pool.h"
#include "weir/io/loop.h"

namespace weir::inline v0 {

/// Who asks: critical work may take the reserved blocks.
enum class Access : std::uint8_t { kOrdinary, kCritical };

/// A BlockPool shared by all loops, some of its blocks kept back for critical work.
///
/// Each loop keeps up to `cached_max` free blocks of its own, so that the usual take-send-return of
/// a request touches nothing shared. Caches are emptied while anybody waits or the pool is down to
/// its reserve: a block is never hoarded from one who needs it, but for those in the cache of a
/// loop that sleeps, which flush() is posted for.
///
/// Promises: never more blocks out than there are; ordinary takers leave `reserved` of them. After
/// want(), the loop's task is posted when a block comes back.
/// Thread-safety: each method names its loop and is called on it; stats() from anywhere.
/// Cost: a few instructions from the cache, else one mutex pair.
class SharedBlocks {
 public:
  struct Shape {
    std::uint32_t count = 0;
    std::size_t bytes_each = 0;
    std::uint32_t reserved = 0;
    std::uint32_t loops = 1;
    std::uint32_t cached_max = 0;  // per loop, at most kCacheCap
  };
  static constexpr std::uint32_t kCacheCap = 4;

  explicit SharedBlocks(const Shape& shape);

  /// nullptr, and counted, when there is none for this asker.
  [[nodiscard]] std::byte* acquire(std::uint32_t loop, Access access) noexcept;
  void release(std::uint32_t loop, std::byte* block) noexcept;

  /// From now on, post `resume` to `on` whenever a block comes back, until unwant().
  void want(std::uint32_t loop, io::Loop& on, io::Task& resume) noexcept;
  void unwant(std::uint32_t loop) noexcept;
  [[nodiscard]] bool wanted() const noexcept {
    return waiting_.load(std::memory_order_relaxed) != 0;
  }
  /// Empties the loop's cache into the pool.
  void flush(std::uint32_t loop) noexcept;

  /// Gives the memory of up to so many cold blocks back to the kernel.
  std::uint32_t trim(std::uint32_t blocks_max) noexcept;
  [[nodiscard]] PoolStats stats() const noexcept;
  /// Blocks free now; the caches' not counted.
  [[nodiscard]] std::uint32_t free_count() const noexcept {
    return free_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  /// How often nobody could be served; equals stats().exhausted.
  [[nodiscard]] std::uint32_t index_of(const std::byte* block) const noexcept {
    return pool_.index_of(block);
  }
  [[nodiscard]] std::size_t block_bytes() const noexcept { return pool_.block_bytes(); }

 private:
  struct alignas(64) PerLoop {
    std::array<std::byte*, kCacheCap> cached{};
    std::atomic<std::uint32_t> cached_count{0};  // written by its loop only
    io::Loop* loop = nullptr;                    // the rest under mutex_
    io::Task* resume = nullptr;
    bool waits = false;
  };

  void give_back(std::byte* block) noexcept;

  const std::uint32_t capacity_;
  const std::uint32_t reserved_;
  const std::uint32_t cached_max_;
  mutable std::mutex mutex_;
  BlockPool pool_;
  std::uint64_t refused_for_reserve_ = 0;  // under mutex_
  std::atomic<std::uint32_t> free_;
  std::atomic<std::uint32_t> waiting_{0};  // loops that want
  std::unique_ptr<PerLoop[]> loops_;
  std::uint32_t loop_count_;
  std::uint32_t next_woken_ = 0;  // under mutex_: round-robin
};

}  // namespace weir::inline v0
