#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/pool_stats.h"
#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"

#include "policy/fair_turns.h"
#include "policy/handshake_patience.h"

namespace weir::inline v0::inline server {

/// The slots for concurrent TLS handshakes over all loops, and the queue for them.
///
/// A handshake needs about ten times the memory of the established connection, so it needs a slot.
/// Without one a connection is queued and holds only the bytes that it has sent. A slot that is
/// given back goes to the queue: critical ones first, then by turns among sources; those of sources
/// that stalled lately have one turn in four.
///
///   state       meaning                                          holds a slot   ends with
///   kOutside    needs none                                       no             enter()
///   kWaiting    queued                                           no             a slot, or its end
///   kGranted    on_slot() will be called                         yes            that call
///   kInside     its handshake runs                               yes            leave()
///   kOnClient   the same, and it waits for its client            yes            leave()
///   kLosing     on_lost() will be called                         yes            that call
///   kLost       it was called                                    yes            leave()
///   kDisplaced  on_lost() will be called                         no             that call
///
/// Promises: never more than `count` slots are held, and never more than `waiting_max` are queued;
/// non-critical connections leave `reserved` slots to critical ones. While somebody is queued, a
/// handshake that waits for its client for longer than policy::handshake_patience() loses its slot.
/// The queue is in order of arrival within a source, until its oldest has waited for the grace;
/// then newest first. Critical connections neither lose a slot nor their place in the queue.
/// Thread-safety: any thread. Cost: a mutex pair; O(slots) while somebody is queued.
/// Lifetime: must outlive every Entrant.
class HandshakeSlots {
 public:
  struct Shape {
    std::uint32_t count = 1;
    std::uint32_t reserved = 0;
    std::uint32_t loops = 1;
    std::uint32_t waiting_max = UINT32_MAX;
  };
  explicit HandshakeSlots(Shape shape, policy::HandshakeRule rule = {});

  /// A connection that needs a slot; embedded in its owner.
  class Entrant {
   public:
    struct Who {
      std::uint32_t loop = 0;
      std::uint64_t source = 0;  // a keyed hash of its address
      bool critical = false;
    };
    enum class State : std::uint8_t {
      kOutside,
      kWaiting,
      kGranted,
      kInside,
      kOnClient,
      kLosing,
      kLost,
      kDisplaced,
    };

    ListHook<Entrant> hook;

   protected:
    explicit Entrant(const Who& who) noexcept : who_(who) {}
    virtual ~Entrant() = default;
    /// Called on its loop: it has a slot now.
    virtual void on_slot() = 0;
    /// Called on its loop: it must leave() soon, unless what its client has sent completes the
    /// handshake. It may have a slot, or be out of the queue without one.
    virtual void on_lost() = 0;

   private:
    friend class HandshakeSlots;
    Who who_;
    TimePoint since_{};  // in this state, if it is kWaiting or kOnClient
    policy::FlowId flow_ = 0;
    bool stalled_ = false;           // its source did lately
    State state_ = State::kOutside;  // under the mutex
  };

  /// Call it first for each loop: `news` is posted to the loop when its entrants got or lost
  /// slots; it calls tell().
  void attach(std::uint32_t loop, io::Loop& on, io::Task& news) noexcept;
  /// Calls on_slot() and on_lost() of the entrants of this loop that they are due for.
  void tell(std::uint32_t loop);

  /// True: it has a slot. False: it is queued, and on_slot() or on_lost() follows.
  [[nodiscard]] bool enter(Entrant& entrant, TimePoint now);
  /// Its handshake cannot continue until its client sends something. Only the first call counts: a
  /// client that sends byte by byte is no faster.
  void wait_for_client(Entrant& entrant, TimePoint now);
  enum class Left : std::uint8_t { kDone, kNotDone };
  /// Gives back the slot or the place in the queue; does nothing if it has neither.
  void leave(Entrant& entrant, Left how, TimePoint now);
  /// Call it regularly: takes slots from handshakes that have waited for too long.
  void reclaim(TimePoint now);

  /// used: slots held; exhausted: how often a connection was queued.
  [[nodiscard]] PoolStats stats() const;
  [[nodiscard]] std::uint32_t waiting() const;

 private:
  using List = IntrusiveList<Entrant, &Entrant::hook>;
  struct Place {
    io::Loop* loop = nullptr;
    io::Task* task = nullptr;
    List granted;
    List lost;
  };
  /// Sources whose hashes begin alike are counted together: 256 KB make that rare.
  struct Source {
    std::uint32_t held = 0;
    std::uint32_t waiting = 0;
    TimePoint stalled_at{};  // the last time that one of it lost its slot or its place in the queue
  };
  static constexpr std::size_t kSources = 16384;
  /// Waiters by turns among sources.
  struct Line {
    policy::FairTurns turns;
    std::array<List, policy::FairTurns::kFlows> flows;
  };

  [[nodiscard]] bool room_for(bool critical) const noexcept {
    return stats_.capacity - stats_.used > (critical ? 0 : reserved_);
  }
  [[nodiscard]] std::size_t ordinary() const noexcept {
    return fresh_.turns.size() + stalled_.turns.size();
  }
  [[nodiscard]] std::size_t queued() const noexcept { return critical_.size() + ordinary(); }
  [[nodiscard]] Line& line_of(const Entrant& entrant) noexcept {
    return entrant.stalled_ ? stalled_ : fresh_;
  }
  [[nodiscard]] Source& source_of(const Entrant& entrant) noexcept {
    return sources_[entrant.who_.source % kSources];
  }
  void take(Entrant& entrant) noexcept;
  void give_back(Entrant& entrant) noexcept;
  void enqueue(Entrant& entrant, TimePoint now);
  void dequeue(Entrant& entrant, bool served);
  void displace_one(TimePoint now);
  void hand_out(TimePoint now);
  [[nodiscard]] Entrant& next_ordinary(TimePoint now);
  void take_from_stalled(TimePoint now);
  [[nodiscard]] Entrant* first_to_lose(TimePoint now) noexcept;
  void lose(Entrant& entrant, Entrant::State into, TimePoint now);
  [[nodiscard]] policy::SlotDemand demand() const noexcept;
  void count(Entrant& entrant, std::uint32_t Source::*what, std::int32_t change) noexcept;

  mutable std::mutex mutex_;
  const std::uint32_t reserved_;
  const std::uint32_t waiting_max_;
  const policy::HandshakeRule rule_;
  PoolStats stats_;
  List critical_;
  Line fresh_;
  Line stalled_;  // of sources that stalled lately
  std::uint32_t turn_ = 0;
  List on_client_;          // longest first
  std::size_t losing_ = 0;  // slots that are about to be given back
  policy::UsualHandshake usual_;
  std::vector<Source> sources_;
  std::uint32_t active_sources_ = 0;
  std::vector<Place> places_;
};

}  // namespace weir::inline v0::inline server
