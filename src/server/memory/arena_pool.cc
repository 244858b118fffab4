#include "memory/arena_pool.h"

#include <algorithm>
#include <utility>

namespace weir::inline v0::inline server {

ArenaPool::ArenaPool(const Shape& shape)
    : blocks_(shape.blocks),
      high_watermark_(shape.high_watermark),
      places_(std::make_unique<Place[]>(shape.blocks.loops)) {
  pending_.capacity = shape.pending_max;
}

void ArenaPool::attach(std::uint32_t loop, io::Loop& on, io::Task& answers) noexcept {
  const std::lock_guard lock(mutex_);
  places_[loop].loop = &on;
  places_[loop].answers = &answers;
}

void ArenaPool::release(std::uint32_t loop, std::byte* arena) noexcept {
  blocks_.release(loop, arena);
  const std::lock_guard lock(mutex_);
  serve(loop);
}

/// Gives free arenas to the longest pending streams while usage stays below the watermark.
void ArenaPool::serve(std::uint32_t loop) noexcept {
  while (!waiting_.empty() && usage(blocks_.stats()) < high_watermark_) {
    std::byte* arena = blocks_.acquire(loop, io::Access::kOrdinary);
    if (arena == nullptr) return;
    tell_later(*waiting_.pop_front(), arena);
  }
}

void ArenaPool::tell_later(ArenaWaiter& waiter, std::byte* arena) noexcept {
  waiter.granted = arena;
  Place& place = places_[waiter.loop];
  place.ready.push_back(waiter);
  place.loop->post(*place.answers);
}

bool ArenaPool::drop_oldest() noexcept {
  const std::lock_guard lock(mutex_);
  ArenaWaiter* oldest = waiting_.pop_front();
  if (oldest != nullptr) tell_later(*oldest, nullptr);
  return oldest != nullptr;
}

bool ArenaPool::enqueue(ArenaWaiter& waiter, TimePoint now) noexcept {
  const std::lock_guard lock(mutex_);
  if (pending_.used == pending_.capacity) {
    ++pending_.exhausted;
    return false;
  }
  pending_.peak = std::max(pending_.peak, ++pending_.used);
  waiter.since = now;
  waiter.granted = nullptr;
  waiting_.push_back(waiter);
  serve(waiter.loop);  // an arena may have been released since the caller checked
  return true;
}

void ArenaPool::cancel(ArenaWaiter& waiter) noexcept {
  std::byte* unused = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!waiter.hook.linked()) return;
    List& list = waiting_.contains(waiter) ? waiting_ : places_[waiter.loop].ready;
    list.remove(waiter);
    --pending_.used;
    unused = std::exchange(waiter.granted, nullptr);
  }
  if (unused != nullptr) release(waiter.loop, unused);
}

void ArenaPool::answer(std::uint32_t loop) {
  while (true) {
    ArenaWaiter* next = nullptr;
    {
      const std::lock_guard lock(mutex_);
      next = places_[loop].ready.pop_front();
      if (next == nullptr) return;
      --pending_.used;
    }
    next->owner->on_arena_ready(std::exchange(next->granted, nullptr));
  }
}

PoolStats ArenaPool::pending_stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return pending_;
}

Duration ArenaPool::oldest_wait(TimePoint now) const noexcept {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? Duration::zero() : now - waiting_.front()->since;
}

}  // namespace weir::inline v0::inline server
