#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/shared_blocks.h"

namespace weir::inline v0::upstream {

/// The bytes of a request's body that are not sent yet, or that another attempt may need.
///
///   keeping    all bytes since the first are here, so another attempt can begin at position 0
///   streaming  more than keep_max came, or no block was free: only unsent bytes are here
///
/// Positions count from the start of the body. Keeping never fails a request: when the bytes to
/// keep do not fit, it changes to streaming, and the request can no longer be sent again.
/// Promises: holds at most kBlocksMax blocks. If no byte is unsent, a piece of block_bytes fits.
/// Thread-safety: its loop's thread. Cost: one copy of each byte that is stored.
/// Lifetime: close() before destruction.
class KeptBody {
 public:
  static constexpr std::size_t kBlocksMax = 4;

  KeptBody() = default;
  KeptBody(const KeptBody&) = delete;
  KeptBody& operator=(const KeptBody&) = delete;
  ~KeptBody();

  struct Source {
    io::SharedBlocks* blocks = nullptr;
    std::uint32_t loop = 0;
    io::Access access = io::Access::kOrdinary;
    std::uint64_t keep_max = 0;  // bytes to keep for another attempt; 0: none
  };
  /// Leases the first block. False: none is free.
  [[nodiscard]] bool open(const Source& source) noexcept;
  /// Returns all blocks.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return count_ > 0; }

  /// Whether this many further bytes can be kept; makes room for them.
  [[nodiscard]] bool can_keep(std::size_t bytes) noexcept;
  /// The same, and from() will return them as one piece.
  [[nodiscard]] bool can_keep_together(std::size_t bytes) noexcept;
  /// Keeps nothing from now on; bytes before `sent_to` are dropped.
  void stop_keeping(std::uint64_t sent_to) noexcept;
  /// Stores bytes that follow end(). There must be room: after can_keep(), or if nothing is unsent.
  void append(std::string_view bytes) noexcept;
  /// Not keeping: bytes that follow end() were sent without being stored.
  void skip(std::uint64_t bytes) noexcept;

  /// The stored bytes from `position` on, as far as they are contiguous.
  [[nodiscard]] std::string_view from(std::uint64_t position) const noexcept;
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] bool keeping() const noexcept { return keeping_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return static_cast<std::size_t>(end_ - begin_);
  }

 private:
  [[nodiscard]] bool grow() noexcept;
  void drop_before(std::uint64_t position) noexcept;
  void release_block(std::size_t index) noexcept;

  Source source_;
  std::array<char*, kBlocksMax> blocks_{};  // in order; the first starts at base_
  std::size_t count_ = 0;
  std::uint64_t base_ = 0;   // position of the first block's first byte
  std::uint64_t begin_ = 0;  // the first byte that is stored
  std::uint64_t end_ = 0;
  bool keeping_ = false;
};

}  // namespace weir::inline v0::upstream
