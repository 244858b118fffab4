#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace weir::inline v0::inline server {

/// A fixed piece of memory for one request, allocated from front to back and freed as a whole.
///
/// Promises: allocate() and extend() succeed, or return nullptr / false; there is no fallback to
/// the heap. The arena is released when the stream ends; destructors are not run.
/// Thread-safety: none. Cost: a few instructions. Lifetime: that of the stream that acquired it.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::byte> memory) noexcept : memory_(memory) {}

  [[nodiscard]] void* allocate(std::size_t size,
                               std::size_t alignment = alignof(std::max_align_t)) {
    void* at = memory_.data() + used_;
    std::size_t room = memory_.size() - used_;
    if (std::align(alignment, size, at, room) == nullptr) return nullptr;
    used_ = memory_.size() - room + size;
    return at;
  }
  /// Grows the newest allocation in place. False if it is not the newest, or there is no room.
  [[nodiscard]] bool extend(const void* newest, std::size_t size, std::size_t new_size) noexcept {
    const std::byte* end = static_cast<const std::byte*>(newest) + size;
    if (end != memory_.data() + used_ || new_size - size > memory_.size() - used_) return false;
    used_ += new_size - size;
    return true;
  }
  /// A T constructed in the arena, or nullptr.
  template <class T, class... Args>
  [[nodiscard]] T* make(Args&&... args) {
    void* at = allocate(sizeof(T), alignof(T));
    return at == nullptr ? nullptr : ::new (at) T(std::forward<Args>(args)...);
  }
  /// A copy of `text` that is valid as long as the arena; a null view if there is no room.
  [[nodiscard]] std::string_view copy(std::string_view text) {
    void* at = allocate(text.size(), 1);
    if (at == nullptr) return {};
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return {static_cast<const char*>(at), text.size()};
  }

  void reset() noexcept { used_ = 0; }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return memory_.size(); }
  [[nodiscard]] std::size_t available() const noexcept { return memory_.size() - used_; }
  [[nodiscard]] bool owns(const void* p) const noexcept {
    const auto* at = static_cast<const std::byte*>(p);
    return at >= memory_.data() && at < memory_.data() + memory_.size();
  }

 private:
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
};

}  // namespace weir::inline v0::inline server
