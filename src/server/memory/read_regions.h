#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "weir/base/block_pool.h"

namespace weir::inline v0::inline server {

/// The read regions of a server: one per possible connection.
///
/// Thread-safety: any thread. Cost: a mutex pair, only when a connection opens or closes.
class RegionPool {
 public:
  explicit RegionPool(BlockPool::Shape shape) : pool_(shape), capacity_(shape.block_count) {}

  /// The index of a region that is not in use.
  [[nodiscard]] std::uint32_t take() noexcept;
  void give(std::uint32_t region) noexcept;
  std::uint32_t trim(std::uint32_t regions_max) noexcept;

  [[nodiscard]] std::size_t region_bytes() const noexcept { return pool_.block_bytes(); }
  [[nodiscard]] std::byte* at(std::uint32_t region) const noexcept { return pool_.at(region); }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }

 private:
  std::mutex mutex_;
  BlockPool pool_;
  std::uint32_t capacity_;
};

/// A leased region.
struct ReadRegion {
  std::span<std::byte> memory;
  std::uint32_t index = 0;
};

/// The regions of one loop: exactly as many as it has connections, so a lease never fails and no
/// connection can take another's region. Leases are last-in-first-out, so few regions stay in use.
///
/// Promises: call adopt() when a connection opens and abandon() when it closes; in between, lease()
/// always succeeds. sweep() gives back the memory of regions that were not used since the last
/// sweep.
/// Thread-safety: its loop's thread. Cost: lease and release are a few instructions.
class RegionStack {
 public:
  explicit RegionStack(RegionPool& pool);
  ~RegionStack();
  RegionStack(const RegionStack&) = delete;
  RegionStack& operator=(const RegionStack&) = delete;

  void adopt();
  void abandon();
  [[nodiscard]] ReadRegion lease();
  void release(const ReadRegion& region);

  std::uint32_t sweep() noexcept;

  [[nodiscard]] std::uint32_t leased() const noexcept { return owned_ - free_; }
  [[nodiscard]] std::uint32_t owned() const noexcept { return owned_; }

 private:
  [[nodiscard]] std::uint32_t& slot(std::uint32_t from_bottom) noexcept {
    const std::uint32_t at = bottom_ + from_bottom;
    return ring_[at >= capacity_ ? at - capacity_ : at];
  }

  RegionPool& pool_;
  std::uint32_t capacity_;
  std::vector<std::uint32_t> ring_;    // free regions, least recently used at bottom_
  std::vector<std::uint8_t> touched_;  // by region: may hold physical memory
  std::uint32_t bottom_ = 0;
  std::uint32_t free_ = 0;
  std::uint32_t owned_ = 0;
  std::uint32_t free_min_ = 0;  // this many at the bottom were not used since the last sweep
};

}  // namespace weir::inline v0::inline server
