#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/experimental/io/socket.h"

#include "memory/write_pool.h"

namespace weir::inline v0::inline server {

/// The output of one connection that the kernel has not accepted yet: a chain of write buffers,
/// then up to four views of memory that stays valid long enough (literals, an arena).
///
/// Promises: bytes are sent in order. It holds at most `quota` buffers. It refuses what it cannot
/// hold, and says whether its quota or the pool is the cause. After a view, only further views can
/// be added.
/// Thread-safety: its loop's thread. Cost: one copy per byte; views cost none.
class Outbox {
 public:
  void bind(WritePool& pool, std::uint32_t loop, std::uint32_t quota) noexcept {
    pool_ = &pool;
    loop_ = loop;
    quota_ = quota;
  }

  /// Copies as much as there is room for; returns how much.
  std::size_t append(std::string_view bytes, io::Access access) noexcept;
  /// Room for at least `size` bytes in one piece, to be filled and then commit()ed; empty if none.
  [[nodiscard]] std::span<char> contiguous(std::size_t size, io::Access access) noexcept;
  void commit(std::size_t bytes) noexcept;
  /// Takes buffers until append() of `size` bytes cannot fail; otherwise takes none and returns
  /// false.
  [[nodiscard]] bool reserve(std::size_t size, io::Access access) noexcept;
  /// Queues a view; false if there is no place for one more.
  [[nodiscard]] bool append_view(std::string_view bytes) noexcept;
  /// append() if it fits the newest buffer, otherwise append_view(); for literals.
  [[nodiscard]] bool append_literal(std::string_view bytes) noexcept;

  /// Sets `pieces` to the bytes to send next; returns how many pieces.
  [[nodiscard]] std::size_t gather(std::span<io::ConstBuffer> pieces) const noexcept;
  /// The kernel accepted that many bytes: empty buffers go back to the pool.
  void sent(std::size_t bytes) noexcept;
  void clear() noexcept;

  [[nodiscard]] bool views_fit(std::size_t count) const noexcept {
    return view_count_ + count <= kViews;
  }

  [[nodiscard]] bool empty() const noexcept { return pending_ == 0; }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  [[nodiscard]] std::uint32_t buffers() const noexcept { return held_; }
  /// Bytes that append() would take now, unless another loop takes the buffers first.
  [[nodiscard]] std::size_t room() const noexcept;
  /// Whether its quota allows more; the pool may still refuse.
  [[nodiscard]] bool may_take() const noexcept {
    return view_count_ == 0 &&
           (held_ < share(io::Access::kOrdinary) || (fill_ != nullptr && fill_->room() > 0));
  }
  /// Whether it is blocked on the pool, not on its quota.
  [[nodiscard]] bool blocked() const noexcept { return needed_ > 0; }
  /// How many buffers it needs; more than one only after reserve().
  [[nodiscard]] std::uint32_t needed() const noexcept { return needed_; }
  /// It is no longer blocked on the pool: the memory was found elsewhere.
  void forgive() noexcept { needed_ = 0; }
  /// Takes a buffer that the pool assigned to this connection.
  void adopt(WriteBuffer& buffer) noexcept;
  /// Removes the newest buffer if it is empty; otherwise nullptr.
  [[nodiscard]] WriteBuffer* take_unused() noexcept;
  /// Gives back empty buffers.
  void drop_unused() noexcept {
    while (pending_ == 0 && first_ != nullptr) drop_first();
  }
  /// While other connections are blocked on the pool, it may hold one buffer.
  void set_fair(bool others_wait) noexcept { others_wait_ = others_wait; }

 private:
  static constexpr std::size_t kViews = 4;
  [[nodiscard]] bool grow(io::Access access, std::uint32_t quota) noexcept;
  /// How many buffers this connection may hold now: write_buffer_share(). reserve() has the whole
  /// quota, because it takes all or nothing.
  [[nodiscard]] std::uint32_t share(io::Access access) const noexcept;
  void chain(WriteBuffer& buffer) noexcept;
  void drop_first() noexcept;

  WritePool* pool_ = nullptr;
  WriteBuffer* first_ = nullptr;
  WriteBuffer* last_ = nullptr;  // the newest of the chain
  WriteBuffer* fill_ = nullptr;  // append() continues here; later ones are reserved and empty
  std::array<std::string_view, kViews> views_{};
  std::size_t pending_ = 0;
  std::uint32_t loop_ = 0;
  std::uint32_t quota_ = 1;
  std::uint32_t held_ = 0;
  std::uint32_t needed_ = 0;
  std::uint8_t view_count_ = 0;
  bool others_wait_ = false;
};

}  // namespace weir::inline v0::inline server
