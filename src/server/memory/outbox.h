#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/experimental/io/socket.h"

#include "memory/write_pool.h"

namespace weir::inline v0::server {

/// The output of one connection that the kernel has not taken yet: a chain of write buffers, then
/// up to four views of memory that lives elsewhere long enough (literals, an arena).
///
/// Promises: bytes leave in the order they were put in. Holds at most `quota` buffers; what it
/// cannot take it refuses, and says whether its own quota or the pool is to blame. While views are
/// queued nothing can be put behind them but further views.
/// Thread-safety: its loop's. Cost: one copy per byte put in; views cost none.
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
  /// Takes buffers until append() of `size` bytes cannot fail; else takes none and says no.
  [[nodiscard]] bool reserve(std::size_t size, io::Access access) noexcept;
  /// Queues a view; false if there is no place for one more.
  [[nodiscard]] bool append_view(std::string_view bytes) noexcept;
  /// append() if it fits the newest buffer, else append_view(): for literals.
  [[nodiscard]] bool append_literal(std::string_view bytes) noexcept;

  /// Fills `pieces` with what is to be sent next; returns how many.
  [[nodiscard]] std::size_t gather(std::span<io::ConstBuffer> pieces) const noexcept;
  /// The kernel took so many bytes: drained buffers go back to the pool.
  void sent(std::size_t bytes) noexcept;
  void clear() noexcept;

  [[nodiscard]] bool views_fit(std::size_t count) const noexcept {
    return view_count_ + count <= kViews;
  }

  [[nodiscard]] bool empty() const noexcept { return pending_ == 0; }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  [[nodiscard]] std::uint32_t buffers() const noexcept { return held_; }
  /// Bytes that append() would take now, if no other loop is faster.
  [[nodiscard]] std::size_t room() const noexcept;
  /// Its quota lets it take more; whether the pool does shows when it tries.
  [[nodiscard]] bool may_take() const noexcept {
    return view_count_ == 0 && (held_ < share() || (fill_ != nullptr && fill_->room() > 0));
  }
  /// The last refusal was the pool's, not the quota's.
  [[nodiscard]] bool blocked() const noexcept { return needed_ > 0; }
  /// How many buffers it takes; more than one only after reserve().
  [[nodiscard]] std::uint32_t needed() const noexcept { return needed_; }
  /// What the pool refused is not wanted any more: it was found elsewhere.
  void forgive() noexcept { needed_ = 0; }
  /// Takes over a buffer that the pool handed to this connection.
  void adopt(WriteBuffer& buffer) noexcept;
  /// Takes the newest buffer out again, if nothing was put into it; else nullptr.
  [[nodiscard]] WriteBuffer* take_unused() noexcept;
  /// Gives back buffers that hold nothing.
  void drop_unused() noexcept {
    while (pending_ == 0 && first_ != nullptr) drop_first();
  }
  /// While others wait for the pool, one buffer must do.
  void set_fair(bool others_wait) noexcept { others_wait_ = others_wait; }

 private:
  static constexpr std::size_t kViews = 4;
  [[nodiscard]] bool grow(io::Access access, std::uint32_t quota) noexcept;
  /// What this connection may hold now. The fuller the pool, the smaller: the whole quota below a
  /// quarter, two buffers below 40 %, then one, and one while others wait. So clients that do not
  /// read can fill the pool to one buffer each beyond 40 % and no further, and with two buffers per
  /// connection, as advised, never raise the pressure by themselves. Critical work has its whole
  /// quota; reserve() too, because it is all or nothing.
  [[nodiscard]] std::uint32_t share() const noexcept;
  void chain(WriteBuffer& buffer) noexcept;
  void drop_first() noexcept;

  WritePool* pool_ = nullptr;
  WriteBuffer* first_ = nullptr;
  WriteBuffer* last_ = nullptr;  // the newest of the chain
  WriteBuffer* fill_ = nullptr;  // where append() goes on; those behind it are reserved and empty
  std::array<std::string_view, kViews> views_{};
  std::size_t pending_ = 0;
  std::uint32_t loop_ = 0;
  std::uint32_t quota_ = 1;
  std::uint32_t held_ = 0;
  std::uint32_t needed_ = 0;
  std::uint8_t view_count_ = 0;
  bool others_wait_ = false;
};

}  // namespace weir::inline v0::server
