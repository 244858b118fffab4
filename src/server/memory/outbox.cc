#include "memory/outbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/base/assert.h"
#include "weir/policy/pool_share.h"

namespace weir::inline v0::inline server {

bool Outbox::grow(io::Access access, std::uint32_t quota) noexcept {
  if (held_ >= quota) return false;
  WriteBuffer* buffer = pool_->acquire(loop_, access);
  if (buffer == nullptr) {
    needed_ = 1;
    return false;
  }
  chain(*buffer);
  return true;
}

void Outbox::chain(WriteBuffer& buffer) noexcept {
  (last_ == nullptr ? first_ : last_->next) = &buffer;
  last_ = &buffer;
  if (fill_ == nullptr) fill_ = &buffer;
  ++held_;
}

void Outbox::adopt(WriteBuffer& buffer) noexcept {
  needed_ = 0;
  buffer.next = nullptr;
  chain(buffer);
}

WriteBuffer* Outbox::take_unused() noexcept {
  WriteBuffer* const unused = last_;
  if (unused == nullptr || unused->end > 0) return nullptr;
  WriteBuffer* before = nullptr;
  for (WriteBuffer* b = first_; b != unused; b = b->next) before = b;
  (before == nullptr ? first_ : before->next) = nullptr;
  last_ = before;
  if (fill_ == unused) fill_ = before;
  --held_;
  return unused;
}

std::uint32_t Outbox::share(io::Access access) const noexcept {
  const io::SharedBlocks& blocks = pool_->blocks();
  return write_buffer_share(
      {.capacity = blocks.capacity(), .free = blocks.free_count()},
      {.quota = quota_, .critical = access == io::Access::kCritical, .others_wait = others_wait_});
}

std::size_t Outbox::append(std::string_view bytes, io::Access access) noexcept {
  if (view_count_ > 0) return 0;
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    if (fill_ != nullptr && fill_->room() == 0 && fill_->next != nullptr) fill_ = fill_->next;
    if (fill_ == nullptr || fill_->room() == 0) {
      if (!grow(access, share(access))) break;
      if (fill_->room() == 0) fill_ = last_;
    }
    const std::size_t size = std::min<std::size_t>(bytes.size() - taken, fill_->room());
    std::memcpy(fill_->space().data(), bytes.data() + taken, size);
    commit(size);
    taken += size;
  }
  return taken;
}

std::span<char> Outbox::contiguous(std::size_t size, io::Access access) noexcept {
  if (view_count_ > 0 || size > pool_->buffer_bytes()) return {};
  if (fill_ == nullptr || fill_->room() < size) {
    if (fill_ != nullptr && fill_->next != nullptr) {
      fill_ = fill_->next;  // a reserved one: empty
    } else {
      if (!grow(access, share(access))) return {};
      fill_ = last_;
    }
  }
  return fill_->space();
}

void Outbox::commit(std::size_t bytes) noexcept {
  WEIR_ASSERT(bytes <= fill_->room());
  fill_->end += static_cast<std::uint32_t>(bytes);
  pending_ += bytes;
}

bool Outbox::reserve(std::size_t size, io::Access access) noexcept {
  if (view_count_ > 0) return false;
  std::size_t have = 0;
  for (const WriteBuffer* b = fill_; b != nullptr; b = b->next) have += b->room();
  WriteBuffer* const before = last_;
  const std::uint32_t held_before = held_;
  while (have < size) {
    if (!grow(access, quota_)) break;
    have += last_->room();
  }
  if (have >= size) return true;
  const std::size_t missing = size - have;
  if (needed_ > 0) {
    needed_ =
        held_ - held_before +
        static_cast<std::uint32_t>((missing + pool_->buffer_bytes() - 1) / pool_->buffer_bytes());
  }
  // Give back what this call took.
  WriteBuffer* extra = before == nullptr ? first_ : before->next;
  (before == nullptr ? first_ : before->next) = nullptr;
  last_ = before;
  if (before == nullptr) fill_ = nullptr;
  for (; extra != nullptr; --held_) pool_->release(loop_, std::exchange(extra, extra->next));
  return false;
}

bool Outbox::append_view(std::string_view bytes) noexcept {
  if (bytes.empty()) return true;
  if (view_count_ == kViews) return false;
  views_[view_count_++] = bytes;
  pending_ += bytes.size();
  return true;
}

bool Outbox::append_literal(std::string_view bytes) noexcept {
  if (view_count_ == 0 && fill_ != nullptr && fill_->room() >= bytes.size()) {
    std::memcpy(fill_->space().data(), bytes.data(), bytes.size());
    commit(bytes.size());
    return true;
  }
  return append_view(bytes);
}

std::size_t Outbox::gather(std::span<io::ConstBuffer> pieces) const noexcept {
  std::size_t count = 0;
  for (const WriteBuffer* b = first_; b != nullptr && count < pieces.size(); b = b->next) {
    if (b->pending() > 0) pieces[count++] = {b->data + b->begin, b->pending()};
  }
  for (std::size_t i = 0; i < view_count_ && count < pieces.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(views_[i].data(), views_[i].size()));
    pieces[count++] = {bytes.data(), bytes.size()};
  }
  return count;
}

void Outbox::sent(std::size_t bytes) noexcept {
  WEIR_ASSERT(bytes <= pending_);
  pending_ -= bytes;
  while (bytes > 0 && first_ != nullptr) {
    const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(bytes, first_->pending()));
    first_->begin += size;
    bytes -= size;
    if (first_->pending() > 0) return;
    drop_first();
  }
  std::size_t gone = 0;
  while (bytes > 0) {
    std::string_view& view = views_[gone];
    const std::size_t size = std::min(bytes, view.size());
    view.remove_prefix(size);
    bytes -= size;
    if (!view.empty()) break;
    ++gone;
  }
  std::move(views_.begin() + static_cast<std::ptrdiff_t>(gone), views_.begin() + view_count_,
            views_.begin());
  view_count_ = static_cast<std::uint8_t>(view_count_ - gone);
  drop_unused();  // reserved, never filled
}

void Outbox::drop_first() noexcept {
  WriteBuffer* drained = first_;
  first_ = drained->next;
  if (last_ == drained) last_ = nullptr;
  if (fill_ == drained) fill_ = first_;
  --held_;
  pool_->release(loop_, drained);
}

void Outbox::clear() noexcept {
  while (first_ != nullptr) drop_first();
  pending_ = 0;
  view_count_ = 0;
  needed_ = 0;
}

std::size_t Outbox::room() const noexcept {
  if (view_count_ > 0) return 0;
  std::size_t have = 0;
  for (const WriteBuffer* b = fill_; b != nullptr; b = b->next) have += b->room();
  const std::uint32_t quota = share(io::Access::kOrdinary);
  const std::uint32_t more = held_ < quota ? quota - held_ : 0;
  return have +
         std::size_t{std::min(more, pool_->blocks().takeable(loop_))} * pool_->buffer_bytes();
}

}  // namespace weir::inline v0::inline server
