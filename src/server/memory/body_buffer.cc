#include "weir/experimental/server/body_buffer.h"

#include <algorithm>
#include <cstring>

namespace weir::inline v0::inline server {

bool BodyBuffer::append(const http::BodyChunk& chunk) {
  if (chunk.len == 0) return true;
  if (chunk.len > capacity_ - size_ && !grow(size_ + chunk.len)) return false;
  std::memcpy(data_ + size_, chunk.data, chunk.len);
  size_ += chunk.len;
  return true;
}

/// Doubles the block, or takes exactly what is needed if doubling does not fit.
bool BodyBuffer::grow(std::size_t needed) {
  const std::size_t doubled = std::max({needed, capacity_ * 2, kFirstBytes});
  for (const std::size_t wanted : {doubled, needed}) {
    if (data_ != nullptr && arena_->extend(data_, capacity_, wanted)) {
      capacity_ = wanted;
      return true;
    }
    auto* moved = static_cast<std::uint8_t*>(arena_->allocate(wanted, 1));
    if (moved == nullptr) continue;
    if (size_ > 0) std::memcpy(moved, data_, size_);
    data_ = moved;
    capacity_ = wanted;
    return true;
  }
  return false;
}

std::string_view BodyBuffer::get() const noexcept {
  if (size_ == 0) return {};
  return {reinterpret_cast<const char*>(data_), size_};
}

}  // namespace weir::inline v0::inline server
