#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"

#include "io/shared_blocks.h"

namespace weir::inline v0::inline server {

/// A pending stream. Embedded in the stream; in the queue at most once.
struct ArenaWaiter {
  /// Called on the stream's loop: the arena, or nullptr if the stream was pending for too long.
  class Owner {
   public:
    virtual void on_arena_ready(std::byte* arena) = 0;

   protected:
    ~Owner() = default;
  };

  ListHook<ArenaWaiter> hook;
  Owner* owner = nullptr;
  TimePoint since{};
  std::uint32_t loop = 0;
  std::byte* granted = nullptr;
};

/// The arenas of all loops, and the queue of pending streams.
///
/// Promises: at most `pending_max` streams are pending. The oldest is served first, and only while
/// usage stays below the high watermark. Each stream is answered once, on its own loop, or
/// cancelled. If a cancelled stream already had an arena, the next one gets it.
/// Thread-safety: any loop. Cost: a mutex pair.
class ArenaPool {
 public:
  struct Shape {
    io::SharedBlocks::Shape blocks;
    std::uint32_t pending_max = 0;
    double high_watermark = 1.0;
  };
  explicit ArenaPool(const Shape& shape);

  /// Where the answers for a loop's streams are posted.
  void attach(std::uint32_t loop, io::Loop& on, io::Task& answers) noexcept;

  [[nodiscard]] std::byte* acquire(std::uint32_t loop, io::Access access) noexcept {
    return blocks_.acquire(loop, access);
  }
  void release(std::uint32_t loop, std::byte* arena) noexcept;

  /// False if the queue is full, which is counted.
  [[nodiscard]] bool enqueue(ArenaWaiter& waiter, TimePoint now) noexcept;
  void cancel(ArenaWaiter& waiter) noexcept;
  /// Ends the oldest pending request without an arena; its loop answers the stream. False if none
  /// is pending.
  bool drop_oldest() noexcept;
  /// Answers this loop's streams that were served or dropped.
  void answer(std::uint32_t loop);

  [[nodiscard]] PoolStats stats() const noexcept { return blocks_.stats(); }
  [[nodiscard]] PoolStats pending_stats() const noexcept;
  [[nodiscard]] Duration oldest_wait(TimePoint now) const noexcept;
  std::uint32_t trim(std::uint32_t arenas_max) noexcept { return blocks_.trim(arenas_max); }

 private:
  using List = IntrusiveList<ArenaWaiter, &ArenaWaiter::hook>;
  struct Place {
    io::Loop* loop = nullptr;
    io::Task* answers = nullptr;
    List ready;
  };
  void serve(std::uint32_t loop) noexcept;
  void tell_later(ArenaWaiter& waiter, std::byte* arena) noexcept;

  io::SharedBlocks blocks_;
  double high_watermark_;
  mutable std::mutex mutex_;
  List waiting_;
  std::unique_ptr<Place[]> places_;
  PoolStats pending_;
};

}  // namespace weir::inline v0::inline server
