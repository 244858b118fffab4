#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/pool_stats.h"

namespace weir::inline v0 {

/// Identifies one object in a Slab. The zero handle identifies none. Fits into a 64-bit word.
struct SlabHandle {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;  // odd while the object exists; 0 in the zero handle

  constexpr explicit operator bool() const noexcept { return generation != 0; }
  bool operator==(const SlabHandle&) const = default;

  [[nodiscard]] constexpr std::uint64_t to_word() const noexcept {
    return (std::uint64_t{generation} << 32U) | index;
  }
  [[nodiscard]] static constexpr SlabHandle from_word(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32U)};
  }
};

/// A fixed number of places for objects of type T, found by handles; a stale handle is detected.
///
/// Promises: all memory is reserved at construction. Places that were never used are not touched,
/// so they cost no physical memory. A handle whose object was released finds nothing (until its
/// place has been reused 2^31 times). Releasing twice, or with a stale or foreign handle, aborts.
/// The place freed last is used first. Objects never move.
/// Thread-safety: none; the owner serialises calls. Cost: O(1) plus the cost of T's own operations.
/// Lifetime: objects that are still held are destroyed with the slab.
template <class T>
class Slab {
 public:
  explicit Slab(std::uint32_t capacity)
      : objects_(capacity == 0 ? nullptr : std::allocator<T>().allocate(capacity)),
        generations_(std::make_unique<std::uint32_t[]>(capacity)),
        free_(std::make_unique_for_overwrite<std::uint32_t[]>(capacity)) {
    stats_.capacity = capacity;
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    for (std::uint32_t i = 0; i < fresh_; ++i) {
      if (live(i)) std::destroy_at(objects_ + i);
    }
    if (objects_ != nullptr) std::allocator<T>().deallocate(objects_, stats_.capacity);
  }

  /// Constructs a T from the arguments; returns the zero handle if every place is taken.
  template <class... Args>
  [[nodiscard]] SlabHandle acquire(Args&&... args) {
    const bool reuse = free_count_ > 0;
    if (!reuse && fresh_ == stats_.capacity) {
      ++stats_.exhausted;
      return {};
    }
    const std::uint32_t index = reuse ? free_[free_count_ - 1] : fresh_;
    std::construct_at(objects_ + index, std::forward<Args>(args)...);  // may throw: no place taken
    if (reuse) {
      --free_count_;
    } else {
      ++fresh_;
    }
    ++generations_[index];
    if (++stats_.used > stats_.peak) stats_.peak = stats_.used;
    return {index, generations_[index]};
  }

  /// The object, or nullptr if the handle is stale, foreign or zero.
  [[nodiscard]] T* get(SlabHandle handle) noexcept {
    return valid(handle) ? objects_ + handle.index : nullptr;
  }
  [[nodiscard]] const T* get(SlabHandle handle) const noexcept {
    return valid(handle) ? objects_ + handle.index : nullptr;
  }

  /// Destroys the object and frees its place. The handle must be live.
  void release(SlabHandle handle) {
    WEIR_ASSERT(valid(handle));
    ++generations_[handle.index];  // before T's destructor, so that a lookup from it finds nothing
    std::destroy_at(objects_ + handle.index);
    free_[free_count_++] = handle.index;
    --stats_.used;
  }

  /// The handle of an object of this slab.
  [[nodiscard]] SlabHandle handle_of(const T* object) const {
    const std::ptrdiff_t offset = object - objects_;
    WEIR_ASSERT(offset >= 0 && offset < static_cast<std::ptrdiff_t>(fresh_));
    const auto index = static_cast<std::uint32_t>(offset);
    WEIR_ASSERT(live(index));
    return {index, generations_[index]};
  }

  /// Calls f(T&) for every object; f may release that object.
  template <class F>
  void for_each(F&& f) {
    for (std::uint32_t i = 0; i < fresh_; ++i) {
      if (live(i)) f(objects_[i]);
    }
  }

  [[nodiscard]] const PoolStats& stats() const noexcept { return stats_; }

 private:
  [[nodiscard]] bool live(std::uint32_t index) const noexcept {
    return (generations_[index] & 1U) != 0;
  }
  [[nodiscard]] bool valid(SlabHandle handle) const noexcept {
    return (handle.generation & 1U) != 0 && handle.index < fresh_ &&
           generations_[handle.index] == handle.generation;
  }

  T* objects_;
  std::unique_ptr<std::uint32_t[]> generations_;
  std::unique_ptr<std::uint32_t[]> free_;  // a stack of indices; places from fresh_ on: never used
  std::uint32_t free_count_ = 0;
  std::uint32_t fresh_ = 0;
  PoolStats stats_;
};

}  // namespace weir::inline v0
