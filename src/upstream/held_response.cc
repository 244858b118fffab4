#include "upstream/held_response.h"

#include <cstring>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::upstream {

void HeldResponse::attach(char* block, const Shape& shape) noexcept {
  block_ = block;
  shape_ = shape;
  begin_ = end_ = field_count_ = 0;
  what_ = What::kNothing;
}

char* HeldResponse::detach() noexcept {
  begin_ = end_ = 0;
  what_ = What::kNothing;
  return std::exchange(block_, nullptr);
}

// Each field: two 32-bit sizes, name, value.
bool HeldResponse::put_fields(const http::HeaderList& fields) noexcept {
  std::size_t needed = 0;
  for (const http::HeaderView& field : fields) {
    needed += 2 * sizeof(std::uint32_t) + field.name.size() + field.value.size();
  }
  if (needed > shape_.field_bytes) return false;
  char* at = block_ + shape_.body_bytes;
  for (const http::HeaderView& field : fields) {
    for (const std::string_view text : {field.name, field.value}) {
      const auto size = static_cast<std::uint32_t>(text.size());
      std::memcpy(at, &size, sizeof size);
      at += sizeof size;
      at += text.copy(at, text.size());
    }
  }
  field_count_ = fields.size();
  return true;
}

http::HeaderList HeldResponse::fields(std::span<http::HeaderView> storage) const noexcept {
  http::HeaderList list;
  list.reset(storage);
  const char* at = block_ + shape_.body_bytes;
  const auto next = [&] {
    std::uint32_t size = 0;
    std::memcpy(&size, at, sizeof size);
    const std::string_view text(at + sizeof size, size);
    at += sizeof size + size;
    return text;
  };
  for (std::size_t i = 0; i < field_count_; ++i) {
    const std::string_view name = next();
    const std::string_view value = next();
    list.append({name, value, http::field_id(name), false});
  }
  return list;
}

bool HeldResponse::put_head(const ResponseHead& head) noexcept {
  WEIR_ASSERT(empty());
  if (!put_fields(head.headers)) return false;
  head_ = head;
  head_.headers = {};
  what_ = What::kHead;
  return true;
}

bool HeldResponse::put_trailers(const http::HeaderList& trailers) noexcept {
  WEIR_ASSERT(what_ == What::kNothing);
  if (!put_fields(trailers)) return false;
  what_ = What::kTrailers;
  return true;
}

void HeldResponse::put_body(std::string_view bytes) noexcept {
  if (bytes.size() > shape_.body_bytes - end_) {
    std::memmove(block_, block_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  WEIR_ASSERT(bytes.size() <= shape_.body_bytes - end_);
  end_ += bytes.copy(block_ + end_, bytes.size());
}

ResponseHead HeldResponse::head(std::span<http::HeaderView> storage) const noexcept {
  ResponseHead head = head_;
  head.headers = fields(storage);
  return head;
}

http::HeaderList HeldResponse::trailers(std::span<http::HeaderView> storage) const noexcept {
  return fields(storage);
}

void HeldResponse::drop_fields() noexcept {
  what_ = What::kNothing;
}

void HeldResponse::consume(std::size_t bytes) noexcept {
  WEIR_ASSERT(bytes <= end_ - begin_);
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

}  // namespace weir::inline v0::upstream
