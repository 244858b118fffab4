#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/http/header_view.h"

namespace weir::inline v0::inline server {

/// What a stream has received while its handler has paused: body bytes, then perhaps trailers, in
/// one leased block.
///
/// The window of the stream is the free room, so put() always finds room.
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
    block_ = block;
    shape_ = shape;
    begin_ = end_ = trailers_end_ = 0;
    trailer_count_ = 0;
  }
  /// Returns the block, or nullptr; its content is dropped.
  [[nodiscard]] std::byte* detach() noexcept {
    begin_ = end_ = 0;
    return std::exchange(block_, nullptr);
  }
  [[nodiscard]] bool attached() const noexcept { return block_ != nullptr; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }

  void put(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return;
    WEIR_ASSERT(block_ != nullptr && bytes.size() <= shape_.body_bytes - size());
    if (bytes.size() > shape_.body_bytes - end_) {
      std::memmove(block_, block_ + begin_, size());
      end_ -= begin_;
      begin_ = 0;
    }
    std::memcpy(block_ + end_, bytes.data(), bytes.size());
    end_ += static_cast<std::uint32_t>(bytes.size());
  }
  /// The oldest bytes, at most that many. They stay until consume().
  [[nodiscard]] std::span<const std::uint8_t> front(std::size_t most) const noexcept {
    const std::size_t n = size() < most ? size() : most;
    return {reinterpret_cast<const std::uint8_t*>(block_) + begin_, n};
  }
  void consume(std::size_t bytes) {
    WEIR_ASSERT(bytes <= size());
    begin_ += static_cast<std::uint32_t>(bytes);
    if (begin_ == end_) begin_ = end_ = 0;
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
  [[nodiscard]] std::byte* trailers() const noexcept { return block_ + shape_.body_bytes; }
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

  std::byte* block_ = nullptr;
  Shape shape_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t trailers_end_ = 0;
  std::uint32_t trailer_count_ = 0;
};

}  // namespace weir::inline v0::inline server
