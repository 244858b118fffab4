#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/experimental/http/header_view.h"

#include "policy/body_window.h"

namespace weir::inline v0::inline server {

/// What a stream has received while its handler has paused: body bytes, then perhaps trailers, in
/// one leased block or in several. The bytes are a ring over all blocks; trailers are in the first.
///
/// The window of the stream is at most the free room, so put() always finds room. Blocks are added
/// and taken away only while it is empty.
/// Promises: bytes and trailers are returned in order and unchanged.
/// Thread-safety: none. Cost: one copy of the bytes that are stored.
class BodyLease {
 public:
  struct Shape {
    std::uint32_t body_bytes = 0;
    std::uint32_t trailer_bytes = 0;  // as H2Limits counts them: name + value + 32 each

    [[nodiscard]] std::size_t block_bytes() const noexcept {
      return std::size_t{body_bytes} + trailer_bytes;
    }
  };

  void attach(std::byte* block, const Shape& shape) noexcept {
    shape_ = shape;
    blocks_[0] = block;
    count_ = 1;
    begin_ = size_ = 0;
    trailers_end_ = trailer_count_ = 0;
  }
  void add(std::byte* block) {
    WEIR_ASSERT(empty() && attached() && count_ < blocks_.size());
    blocks_[count_++] = block;
    begin_ = 0;
  }
  /// Returns the block that was added last, not the first one.
  [[nodiscard]] std::byte* take_away() {
    WEIR_ASSERT(empty() && count_ > 1);
    begin_ = 0;
    return blocks_[--count_];
  }
  /// Returns a block, or nullptr if none is left; the content is dropped.
  [[nodiscard]] std::byte* detach() noexcept {
    begin_ = size_ = 0;
    return count_ == 0 ? nullptr : blocks_[--count_];
  }
  [[nodiscard]] bool attached() const noexcept { return count_ > 0; }
  [[nodiscard]] std::uint32_t blocks() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept {
    return std::size_t{count_} * shape_.body_bytes;
  }

  void put(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return;
    WEIR_ASSERT(bytes.size() <= capacity() - size_);
    while (!bytes.empty()) {
      const std::span<std::byte> room = at((begin_ + size_) % capacity());
      const std::size_t n = std::min(bytes.size(), room.size());
      std::memcpy(room.data(), bytes.data(), n);
      size_ += n;
      bytes = bytes.subspan(n);
    }
  }
  /// The oldest bytes, at most that many, as far as they are in one piece. They stay until
  /// consume().
  [[nodiscard]] std::span<const std::uint8_t> front(std::size_t most) const noexcept {
    if (empty()) return {};
    const std::span<std::byte> piece = at(begin_);
    return {reinterpret_cast<const std::uint8_t*>(piece.data()),
            std::min({piece.size(), size_, most})};
  }
  void consume(std::size_t bytes) {
    WEIR_ASSERT(bytes <= size_);
    size_ -= bytes;
    begin_ = empty() ? 0 : (begin_ + bytes) % capacity();
  }

  void put_trailers(const http::HeaderList& trailers) {
    for (const http::HeaderView& field : trailers) {
      put_text(field.name);
      put_text(field.value);
      ++trailer_count_;
    }
  }
  /// The stored trailers, read into `storage` (with room for as many as were put).
  void read_trailers(std::span<http::HeaderView> storage, http::HeaderList& out) const {
    out.reset(storage);
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < trailer_count_; ++i) {
      const std::string_view name = text_at(at);
      const std::string_view value = text_at(at);
      out.append({name, value, http::field_id(name), false});
    }
  }

 private:
  /// From this place of the ring to the end of its block.
  [[nodiscard]] std::span<std::byte> at(std::size_t place) const noexcept {
    const std::size_t within = place % shape_.body_bytes;
    return {blocks_[place / shape_.body_bytes] + within, shape_.body_bytes - within};
  }
  [[nodiscard]] std::byte* trailers() const noexcept { return blocks_[0] + shape_.body_bytes; }
  void put_text(std::string_view text) {
    const auto size = static_cast<std::uint32_t>(text.size());
    WEIR_ASSERT(sizeof size + size <= shape_.trailer_bytes - trailers_end_);
    std::memcpy(trailers() + trailers_end_, &size, sizeof size);
    std::memcpy(trailers() + trailers_end_ + sizeof size, text.data(), size);
    trailers_end_ += static_cast<std::uint32_t>(sizeof size) + size;
  }
  [[nodiscard]] std::string_view text_at(std::uint32_t& at) const noexcept {
    std::uint32_t size = 0;
    std::memcpy(&size, trailers() + at, sizeof size);
    const char* text = reinterpret_cast<const char*>(trailers() + at + sizeof size);
    at += static_cast<std::uint32_t>(sizeof size) + size;
    return {text, size};
  }

  std::array<std::byte*, policy::kWindowLeasesMax> blocks_{};
  Shape shape_;
  std::uint32_t count_ = 0;
  std::uint32_t trailers_end_ = 0;
  std::uint32_t trailer_count_ = 0;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weir::inline v0::inline server
