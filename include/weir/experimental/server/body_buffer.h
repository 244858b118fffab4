#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/experimental/http/header_view.h"
#include "weir/experimental/server/arena.h"

namespace weir::inline v0::inline server {

/// Collects the pieces of a body into one contiguous block inside an arena.
///
/// Promises: append() takes a whole piece, or returns false and changes nothing if the arena has no
/// room. While nothing else is allocated from the arena, it grows in place without copying.
/// Thread-safety: none. Cost: one copy per byte, plus log2 moves if it cannot grow in place.
/// Lifetime: that of the arena.
class BodyBuffer {
 public:
  BodyBuffer() = default;
  explicit BodyBuffer(Arena& arena) noexcept : arena_(&arena) {}

  [[nodiscard]] bool append(const http::BodyChunk& chunk);
  /// Makes room for `size` bytes in total, for a body whose length is known.
  [[nodiscard]] bool reserve(std::size_t size) { return size <= capacity_ || grow(size); }

  /// All bytes so far; a null view if there are none.
  [[nodiscard]] std::string_view get() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] Arena* arena() const noexcept { return arena_; }

  /// Drops the bytes; keeps the arena and the room.
  void reset() noexcept { size_ = 0; }

 private:
  static constexpr std::size_t kFirstBytes = 1024;
  [[nodiscard]] bool grow(std::size_t needed);

  Arena* arena_ = nullptr;
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace weir::inline v0::inline server
