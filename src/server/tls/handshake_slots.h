#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/pool_stats.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::inline server {

/// The slots for concurrent TLS handshakes over all loops, and the queue for them.
///
/// A handshake needs about ten times the memory of the established connection, so it needs a slot.
/// Without one a connection is queued in order of arrival and holds only the bytes that it has
/// sent. A slot that is given back goes to the first in the queue, critical ones first.
///
/// Promises: never more than `count` slots are held; non-critical connections leave `reserved`
/// slots to critical ones. A free slot is given directly to the first in the queue, so none is
/// overtaken.
/// Thread-safety: any thread. Cost: a mutex pair; a handshake costs a thousand times that.
/// Lifetime: must outlive every Entrant.
class HandshakeSlots {
 public:
  struct Shape {
    std::uint32_t count = 1;
    std::uint32_t reserved = 0;
    std::uint32_t loops = 1;
  };
  explicit HandshakeSlots(Shape shape);

  /// A connection that needs a slot; embedded in its owner.
  class Entrant {
   public:
    enum class State : std::uint8_t { kOutside, kWaiting, kGranted, kInside };

    ListHook<Entrant> hook;

   protected:
    Entrant(std::uint32_t loop, bool critical) noexcept : loop_(loop), critical_(critical) {}
    virtual ~Entrant() = default;
    /// Called on its loop: it has a slot now.
    virtual void on_slot() = 0;

   private:
    friend class HandshakeSlots;
    std::uint32_t loop_;
    State state_ = State::kOutside;  // under the mutex
    bool critical_;
  };

  /// Call it first for each loop: `granted` is posted to the loop when its entrants got slots; it
  /// calls tell().
  void attach(std::uint32_t loop, io::Loop& on, io::Task& granted) noexcept;
  /// Calls on_slot() of every entrant of this loop that got a slot.
  void tell(std::uint32_t loop);

  /// True: it has a slot. False: it is queued, and on_slot() follows.
  [[nodiscard]] bool enter(Entrant& entrant);
  /// Gives back the slot or the place in the queue; does nothing if it has neither.
  void leave(Entrant& entrant);

  /// used: slots held; exhausted: how often a connection was queued.
  [[nodiscard]] PoolStats stats() const;
  [[nodiscard]] std::uint32_t waiting() const;

 private:
  using List = IntrusiveList<Entrant, &Entrant::hook>;
  struct Place {
    io::Loop* loop = nullptr;
    io::Task* task = nullptr;
    List granted;
  };

  [[nodiscard]] bool room_for(bool critical) const noexcept {
    return stats_.capacity - stats_.used > (critical ? 0 : reserved_);
  }
  void take() noexcept {
    if (++stats_.used > stats_.peak) stats_.peak = stats_.used;
  }
  void hand_out();

  mutable std::mutex mutex_;
  const std::uint32_t reserved_;
  PoolStats stats_;
  List critical_;
  List ordinary_;
  std::vector<Place> places_;
};

}  // namespace weir::inline v0::inline server
