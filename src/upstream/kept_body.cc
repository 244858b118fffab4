#include "upstream/kept_body.h"

#include <algorithm>
#include <cstring>

#include "weir/base/assert.h"

namespace weir::inline v0::upstream {

KeptBody::~KeptBody() {
  WEIR_ASSERT(count_ == 0);
}

bool KeptBody::open(const Source& source) noexcept {
  WEIR_ASSERT(count_ == 0);
  source_ = source;
  base_ = begin_ = end_ = 0;
  keeping_ = source.keep_max > 0;
  return grow();
}

void KeptBody::close() noexcept {
  while (count_ > 0) release_block(count_ - 1);
  base_ = begin_ = end_ = 0;
  keeping_ = false;
}

bool KeptBody::grow() noexcept {
  if (count_ == kBlocksMax) return false;
  std::byte* block = source_.blocks->acquire(source_.loop, source_.access);
  if (block == nullptr) return false;
  blocks_[count_++] = reinterpret_cast<char*>(block);
  return true;
}

void KeptBody::release_block(std::size_t index) noexcept {
  source_.blocks->release(source_.loop, reinterpret_cast<std::byte*>(blocks_[index]));
  std::move(blocks_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
            blocks_.begin() + static_cast<std::ptrdiff_t>(count_),
            blocks_.begin() + static_cast<std::ptrdiff_t>(index));
  --count_;
}

// One block stays, also if it is empty: the next piece must find room.
void KeptBody::drop_before(std::uint64_t position) noexcept {
  const std::uint64_t size = source_.blocks->block_bytes();
  begin_ = std::max(begin_, position);
  while (count_ > 1 && base_ + size <= begin_) {
    release_block(0);
    base_ += size;
  }
  if (begin_ != end_) return;
  while (count_ > 1) release_block(count_ - 1);  // leased to keep bytes that did not all fit
  base_ = begin_;
}

void KeptBody::stop_keeping(std::uint64_t sent_to) noexcept {
  if (count_ == 0) return;
  keeping_ = false;
  drop_before(sent_to);
}

void KeptBody::skip(std::uint64_t bytes) noexcept {
  WEIR_ASSERT(!keeping_ && begin_ == end_);
  end_ += bytes;
  drop_before(end_);
}

bool KeptBody::can_keep(std::size_t bytes) noexcept {
  if (!keeping_ || end_ + bytes > source_.keep_max) return false;
  const std::uint64_t size = source_.blocks->block_bytes();
  while (count_ * size - (end_ - base_) < bytes) {
    if (!grow()) return false;
  }
  return true;
}

bool KeptBody::can_keep_together(std::size_t bytes) noexcept {
  const std::uint64_t size = source_.blocks->block_bytes();
  return (end_ - base_) % size + bytes <= size && can_keep(bytes);
}

void KeptBody::append(std::string_view bytes) noexcept {
  const std::uint64_t size = source_.blocks->block_bytes();
  WEIR_ASSERT(count_ * size - (end_ - base_) >= bytes.size());
  while (!bytes.empty()) {
    const std::uint64_t offset = end_ - base_;
    const auto at = static_cast<std::size_t>(offset % size);
    const std::size_t n = std::min<std::size_t>(bytes.size(), size - at);
    std::memcpy(blocks_[static_cast<std::size_t>(offset / size)] + at, bytes.data(), n);
    end_ += n;
    bytes.remove_prefix(n);
  }
}

std::string_view KeptBody::from(std::uint64_t position) const noexcept {
  WEIR_ASSERT(position >= begin_ && position <= end_);
  if (position == end_) return {};
  const std::uint64_t size = source_.blocks->block_bytes();
  const std::uint64_t offset = position - base_;
  const std::size_t at = static_cast<std::size_t>(offset % size);
  const std::uint64_t n = std::min<std::uint64_t>(size - at, end_ - position);
  return {blocks_[static_cast<std::size_t>(offset / size)] + at, static_cast<std::size_t>(n)};
}

}  // namespace weir::inline v0::upstream
