#pragma once

#include <cstddef>

#include "weir/experimental/server/arena.h"
#include "weir/experimental/server/stream.h"

#include "memory/arena_pool.h"

namespace weir::inline v0::inline server {

class LoopShard;

/// The arena of one stream: not requested, pending, held or released.
///
/// Promises: at most one arena and at most one pending request at a time; release() ends both, and
/// no callback follows. The owner gets the result by on_arena_ready() and passes it here.
/// Thread-safety: its loop's thread. Cost: that of ArenaPool.
class StreamArena {
 public:
  StreamArena(LoopShard& shard, ArenaWaiter::Owner& owner) noexcept;

  [[nodiscard]] ArenaAnswer acquire(io::Access access, ArenaWait wait);
  /// The result of a pending request: memory, or nullptr after a timeout, which is counted.
  void on_ready(std::byte* memory) noexcept;
  void release() noexcept;

  [[nodiscard]] bool waiting() const noexcept { return waiting_; }
  /// nullptr if no arena is held.
  [[nodiscard]] Arena* held() const noexcept { return memory_ != nullptr ? &arena_ : nullptr; }

 private:
  void take(std::byte* memory) noexcept;

  LoopShard& shard_;
  ArenaWaiter waiter_;
  mutable Arena arena_;  // Stream::arena() is const, but using an arena changes it
  std::byte* memory_ = nullptr;
  bool waiting_ = false;
};

}  // namespace weir::inline v0::inline server
