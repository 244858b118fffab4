#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weir/base/pool_stats.h"

namespace weir::inline v0 {

/// A fixed number of equal memory blocks for IO buffers and arenas, in one mapping.
///
/// Promises: address space is reserved at construction (std::bad_alloc if there is none). A block
/// that was never used costs no physical memory, because blocks contain no bookkeeping. The block
/// freed last is used first, so few pages stay in use. An empty pool returns nullptr and counts it.
/// Releasing a block twice, or a pointer that is not the start of a block of this pool, aborts. A
/// block starts on a cache line, or on a page if block_bytes is a multiple of the page size.
/// Contents are not cleared.
/// Thread-safety: none; the owner serialises calls. Cost: O(1); only trim() makes a system call.
/// Lifetime: must outlive every use of its blocks.
class BlockPool {
 public:
  struct Shape {
    std::uint32_t block_count = 0;
    std::size_t block_bytes = 0;
  };

  explicit BlockPool(Shape shape);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  [[nodiscard]] std::byte* acquire() noexcept;
  void release(std::byte* block) noexcept;

  /// The usable bytes of a block that acquire() returned.
  [[nodiscard]] std::span<std::byte> span_of(std::byte* block) const noexcept {
    return {block, block_bytes_};
  }
  /// Position of the block in the pool, 0 to block_count - 1.
  [[nodiscard]] std::uint32_t index_of(const std::byte* block) const noexcept;
  [[nodiscard]] std::byte* at(std::uint32_t index) const noexcept;

  /// Gives the physical memory of up to `blocks_max` of the least recently used free blocks back to
  /// the kernel; returns how many. It costs more than a request: call it in a periodic sweep, never
  /// on the data path.
  std::uint32_t trim(std::uint32_t blocks_max) noexcept;

  [[nodiscard]] std::size_t block_bytes() const noexcept { return block_bytes_; }
  /// Bytes of address space reserved: the most memory the pool can use, without bookkeeping.
  [[nodiscard]] std::size_t mapped_bytes() const noexcept { return mapped_bytes_; }
  [[nodiscard]] const PoolStats& stats() const noexcept { return stats_; }

 private:
  std::size_t block_bytes_;
  std::size_t stride_;
  std::size_t mapped_bytes_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<std::uint32_t[]> free_;  // a stack, least recently used at the bottom
  std::unique_ptr<bool[]> taken_;
  std::uint32_t free_count_ = 0;
  std::uint32_t trimmed_ = 0;  // this many at the bottom of the stack hold no physical memory
  std::uint32_t fresh_ = 0;    // blocks from here on were never used
  PoolStats stats_;
};

}  // namespace weir::inline v0
