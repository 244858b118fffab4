#pragma once

#include <cstddef>

#include "weir/experimental/server/arena.h"
#include "weir/experimental/server/stream.h"

#include "memory/arena_pool.h"

namespace weir::inline v0::server {

class LoopShard;

/// One stream's arena: asked for, waited for, held, given back.
///
/// Promises: at most one arena at a time, at most one wait; release() ends both, and after it
/// nothing is told. Its owner wants_events of the end of a wait by on_arena_ready() and hands that
/// here. Thread-safety: its loop only. Cost: what ArenaPool costs.
class StreamArena {
 public:
  StreamArena(LoopShard& shard, ArenaWaiter::Owner& owner) noexcept;

  [[nodiscard]] ArenaAnswer acquire(io::Access access, ArenaWait wait);
  /// The end of a wait: memory, or nullptr when it was too long, which is counted.
  void on_ready(std::byte* memory) noexcept;
  void release() noexcept;

  [[nodiscard]] bool waiting() const noexcept { return waiting_; }
  /// Null while nothing is held.
  [[nodiscard]] Arena* held() const noexcept { return memory_ != nullptr ? &arena_ : nullptr; }

 private:
  void take(std::byte* memory) noexcept;

  LoopShard& shard_;
  ArenaWaiter waiter_;
  mutable Arena arena_;  // Stream::arena() is const, what one does with an arena is not
  std::byte* memory_ = nullptr;
  bool waiting_ = false;
};

}  // namespace weir::inline v0::server
