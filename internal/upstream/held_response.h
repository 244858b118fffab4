#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/experimental/http/header_view.h"

#include "upstream/response_head.h"

namespace weir::inline v0::upstream {

/// The part of a response that its owner has not accepted yet: a head, body bytes, trailers, in one
/// block.
///
/// Body bytes are at the front; the fields of a head or of trailers, which are never there at the
/// same time, behind them. More body than room() must not be put: the window of an HTTP/2 stream is
/// not larger than that.
/// Promises: what was put comes back in order and unchanged.
/// Thread-safety: none. Cost: one copy of what is stored.
class HeldResponse {
 public:
  struct Shape {
    std::size_t body_bytes = 0;
    std::size_t field_bytes = 0;
  };

  void attach(char* block, const Shape& shape) noexcept;
  /// Returns the block, or nullptr; its content is dropped.
  [[nodiscard]] char* detach() noexcept;
  [[nodiscard]] bool attached() const noexcept { return block_ != nullptr; }

  /// False: the fields do not fit.
  [[nodiscard]] bool put_head(const ResponseHead& head) noexcept;
  [[nodiscard]] bool put_trailers(const http::HeaderList& trailers) noexcept;
  void put_body(std::string_view bytes) noexcept;

  [[nodiscard]] bool has_head() const noexcept { return what_ == What::kHead; }
  [[nodiscard]] bool has_trailers() const noexcept { return what_ == What::kTrailers; }
  [[nodiscard]] bool empty() const noexcept { return what_ == What::kNothing && begin_ == end_; }
  /// The stored head; its fields are views of the block, listed in `storage`.
  [[nodiscard]] ResponseHead head(std::span<http::HeaderView> storage) const noexcept;
  [[nodiscard]] http::HeaderList trailers(std::span<http::HeaderView> storage) const noexcept;
  void drop_fields() noexcept;
  [[nodiscard]] std::size_t room() const noexcept { return shape_.body_bytes - (end_ - begin_); }
  [[nodiscard]] std::string_view body() const noexcept { return {block_ + begin_, end_ - begin_}; }
  void consume(std::size_t bytes) noexcept;

 private:
  enum class What : std::uint8_t { kNothing, kHead, kTrailers };

  [[nodiscard]] bool put_fields(const http::HeaderList& fields) noexcept;
  [[nodiscard]] http::HeaderList fields(std::span<http::HeaderView> storage) const noexcept;

  char* block_ = nullptr;
  Shape shape_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t field_count_ = 0;
  ResponseHead head_;  // without its fields
  What what_ = What::kNothing;
};

}  // namespace weir::inline v0::upstream
