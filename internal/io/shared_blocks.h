#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "weir/base/block_pool.h"
#include "weir/base/ring.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::io {

/// The kind of caller: critical work may take the reserved blocks.
enum class Access : std::uint8_t { kOrdinary, kCritical };

/// A BlockPool shared by all loops, with some blocks reserved for critical work.
///
/// Each loop caches up to `cached_max` free blocks, so that the usual acquire, send and release of
/// a request touches no shared data. While there are waiters, released blocks are assigned to the
/// loops with waiters, in proportion to their number (smooth weighted round-robin): the loop that
/// released a block cannot take it again before them. A loop that takes its blocks late gets some
/// turns back. Caches are emptied meanwhile.
///
/// Promises: never more blocks in use than exist; ordinary callers and waiters leave `reserved` of
/// them. When a block is assigned to a loop, the loop's task is posted.
/// Thread-safety: each method names its loop and is called on it; stats() from any thread.
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

  /// Sets the task to post when blocks are assigned to the loop. Call it before set_waiting().
  void attach(std::uint32_t loop, io::Loop& on, io::Task& handed) noexcept;

  /// Returns nullptr, and counts it, if there is no block for this caller.
  [[nodiscard]] std::byte* acquire(std::uint32_t loop, Access access) noexcept;
  void release(std::uint32_t loop, std::byte* block) noexcept;

  /// Sets the loop's number of waiters; each waits for one block.
  void set_waiting(std::uint32_t loop, std::uint32_t askers) noexcept;
  /// A block assigned to the loop for one of its waiters, or nullptr.
  [[nodiscard]] std::byte* take_handed(std::uint32_t loop) noexcept;
  /// Returns the loop's cached blocks to the pool.
  void flush(std::uint32_t loop) noexcept;

  /// Returns the memory of at most this many unused blocks to the kernel.
  std::uint32_t trim(std::uint32_t blocks_max) noexcept;
  [[nodiscard]] PoolStats stats() const noexcept;
  /// Free blocks of the pool, without those in caches or assigned to loops.
  [[nodiscard]] std::uint32_t free_count() const noexcept {
    return free_.load(std::memory_order_relaxed);
  }
  /// The blocks that the loop's ordinary callers can take now: free ones and those in its cache.
  [[nodiscard]] std::uint32_t takeable(std::uint32_t loop) const noexcept {
    const std::uint32_t free = free_count();
    return (free > reserved_ ? free - reserved_ : 0) +
           loops_[loop].cached_count.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool wanted() const noexcept {
    return waiting_.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint32_t reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::uint32_t index_of(const std::byte* block) const noexcept {
    return pool_.index_of(block);
  }
  [[nodiscard]] std::size_t block_bytes() const noexcept { return pool_.block_bytes(); }

 private:
  struct alignas(64) PerLoop {
    std::array<std::byte*, kCacheCap> cached{};
    std::atomic<std::uint32_t> cached_count{0};  // written by its loop only
    // Under mutex_:
    Ring<std::byte*> handed{0};
    std::uint32_t waiting = 0;
    std::int64_t credit = 0;
    io::Loop* loop = nullptr;
    io::Task* task = nullptr;
  };

  void give_back(std::byte* block) noexcept;
  [[nodiscard]] std::byte* take_free() noexcept;
  [[nodiscard]] PerLoop* next_waiting() noexcept;

  const std::uint32_t capacity_;
  const std::uint32_t reserved_;
  const std::uint32_t cached_max_;
  mutable std::mutex mutex_;
  BlockPool pool_;
  std::uint64_t refused_for_reserve_ = 0;  // under mutex_
  std::uint32_t handed_count_ = 0;         // under mutex_
  std::atomic<std::uint32_t> free_;
  std::atomic<std::uint32_t> waiting_{0};  // waiters of all loops
  std::unique_ptr<PerLoop[]> loops_;
  std::uint32_t loop_count_;
};

}  // namespace weir::inline v0::io
