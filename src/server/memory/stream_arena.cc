#include "memory/stream_arena.h"

#include <utility>

#include "shard.h"

namespace weir::inline v0::inline server {

StreamArena::StreamArena(LoopShard& shard, ArenaWaiter::Owner& owner) noexcept : shard_(shard) {
  waiter_.owner = &owner;
  waiter_.loop = shard.index();
}

ArenaAnswer StreamArena::acquire(io::Access access, ArenaWait wait) {
  if (memory_ != nullptr) return {&arena_, ArenaStatus::kGranted};
  if (waiting_) return {nullptr, ArenaStatus::kPending};
  const LoopShard::ArenaGrant grant =
      shard_.acquire_arena(waiter_, access, wait == ArenaWait::kQueue);
  waiting_ = grant.pending;
  if (waiting_) return {nullptr, ArenaStatus::kPending};
  if (grant.memory == nullptr) return {};
  take(grant.memory);
  return {&arena_, ArenaStatus::kGranted};
}

void StreamArena::on_ready(std::byte* memory) noexcept {
  waiting_ = false;
  if (memory != nullptr) return take(memory);
  shard_.counters().count(RefuseReason::kArenaTimeout);
}

void StreamArena::release() noexcept {
  if (std::exchange(waiting_, false)) shard_.shared().arenas.cancel(waiter_);
  if (memory_ == nullptr) return;
  shard_.release_arena(std::exchange(memory_, nullptr));
  arena_ = Arena();
}

void StreamArena::take(std::byte* memory) noexcept {
  memory_ = memory;
  arena_ = Arena({memory, shard_.config().arena_size});
}

}  // namespace weir::inline v0::inline server
