#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/pool_stats.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::server {

/// How many TLS handshakes may be under way at once, over all loops, and who is next.
///
/// A handshake holds some ten times the memory of the connection that comes of it, so it needs a
/// slot. Without one a connection waits, in order of arrival, with nothing but the few bytes it has
/// sent; a slot that comes back goes to the one in front, critical ones before all others.
///
/// Promises: never more than `count` are held; ordinary ones leave `reserved` to critical ones. A
/// slot is handed over, not offered: nobody overtakes one who waits.
/// Thread-safety: any. Cost: a mutex pair; a handshake costs a thousand times that.
/// Lifetime: outlives every Entrant.
class HandshakeSlots {
 public:
  struct Shape {
    std::uint32_t count = 1;
    std::uint32_t reserved = 0;
    std::uint32_t loops = 1;
  };
  explicit HandshakeSlots(Shape shape);

  /// A connection that wants to shake hands; embedded in its owner.
  class Entrant {
   public:
    enum class State : std::uint8_t { kOutside, kWaiting, kGranted, kInside };

    ListHook<Entrant> hook;

   protected:
    Entrant(std::uint32_t loop, bool critical) noexcept : loop_(loop), critical_(critical) {}
    virtual ~Entrant() = default;
    /// On its loop: the slot it waited for is its own.
    virtual void on_slot() = 0;

   private:
    friend class HandshakeSlots;
    std::uint32_t loop_;
    State state_ = State::kOutside;  // under the mutex
    bool critical_;
  };

  /// Before anything else of that loop: where `granted` runs when slots were handed to entrants of
  /// this loop. It calls tell().
  void attach(std::uint32_t loop, io::Loop& on, io::Task& granted) noexcept;
  /// Calls on_slot() of every entrant of this loop who got one.
  void tell(std::uint32_t loop);

  /// True: it has a slot. False: it waits, and on_slot() will tell.
  [[nodiscard]] bool enter(Entrant& entrant);
  /// Gives back the slot, or the place in the queue; nothing when it has neither.
  void leave(Entrant& entrant);

  /// used: slots held; exhausted: how often somebody had to wait.
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
  void take() noexcept;
  void hand_out();

  mutable std::mutex mutex_;
  const std::uint32_t reserved_;
  PoolStats stats_;
  List critical_;
  List ordinary_;
  std::vector<Place> places_;
};

}  // namespace weir::inline v0::server
