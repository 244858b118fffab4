#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/base/bounded_count.h"
#include "weir/base/intrusive_list.h"
#include "weir/base/owned_count.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_config.h"
#include "weir/control/outgoing_item.h"

namespace weir::inline v0::inline control {

/// What the queues of all loops to one destination hold together, and the state that follows.
/// Thread-safety: any member, any thread; no bound is exceeded under any interleaving.
struct alignas(64) OutgoingCounts {
  BoundedCount<std::uint32_t> primary;
  BoundedCount<std::uint32_t> ring;
  BoundedCount<std::uint32_t> critical;
  BoundedCount<std::uint64_t> bytes;  // in flight included
  BoundedCount<std::uint64_t> critical_bytes;
  std::atomic<policy::OutgoingState> state{policy::OutgoingState::kHealthy};
};

/// What the queues to all destinations hold together.
struct OutgoingTotals {
  ContendedCount<std::uint64_t> bytes;
  ContendedCount<std::uint64_t> critical_bytes;
};

/// Numbers of one queue. offered = sent + failed + dropped + refused + expired + queued + in_flight
struct OutgoingStats {
  std::uint64_t offered = 0;
  std::uint64_t sent = 0;
  std::uint64_t failed = 0;
  std::uint64_t withdrawn = 0;  // of the failed ones
  std::uint64_t dropped = 0;
  std::uint64_t refused = 0;
  std::uint64_t expired = 0;
  std::uint64_t critical_refused = 0;  // of the refused ones; must stay 0
  std::uint64_t queued = 0;
  std::uint64_t in_flight = 0;

  OutgoingStats& operator+=(const OutgoingStats& more) noexcept;
};

/// One loop's queue to one destination: primary queue, overflow ring, a lane for critical items.
///
/// Order: critical; then by class, then by age. While the own ring holds anything, new items go to
/// the ring, and each get() moves its oldest to the primary queue. In a full ring a new item takes
/// the place of the oldest item of the lowest class, if that is not above its own; otherwise it is
/// refused. So the newest items are kept, and low ones are dropped before normal ones.
///
/// Critical items have places and bytes of their own, never enter the ring, and do not count
/// in in_flight_max.
///
/// Bounds are those of OutgoingConfig over all queues with the same counts. The state is that of
/// the counts, judged after each put(), get() and end; all loops see the same one.
///
/// Promises: put() never blocks, throws or allocates. Every item ends exactly once (OutgoingStats).
/// An item that cannot enter drops no other.
/// Thread-safety: the owner's thread; queues of other threads may share the counts. stats() and
/// state() from any thread; on another thread the sums of stats() may be off by what is just
/// happening.
/// Cost: O(1); a put that needs bytes drops as many items as it takes; expire() is O(queued).
/// Lifetime: empty when it is destroyed: close(), and no item in flight. Counts, totals and config
/// outlive it.
class OutgoingQueue {
 public:
  OutgoingQueue(const OutgoingConfig& config, OutgoingCounts& counts,
                OutgoingTotals& totals) noexcept
      : config_(&config), counts_(&counts), totals_(&totals) {}
  OutgoingQueue(const OutgoingQueue&) = delete;
  OutgoingQueue& operator=(const OutgoingQueue&) = delete;
  ~OutgoingQueue();

  OutgoingPut put(OutgoingItem& item, TimePoint now) noexcept;
  /// The owner has no place for the item: it counts as offered and refused.
  void refuse(const OutgoingItem& item) noexcept;
  /// The next item to send; nullptr: there is none, or in_flight_max are in flight. The owner sends
  /// it and then calls finish().
  [[nodiscard]] OutgoingItem* get(TimePoint now) noexcept;
  /// The end of an item in flight: kSent or kFailed.
  void finish(OutgoingItem& item, OutgoingEnd how) noexcept;
  /// Takes a queued item back; its callback is not called.
  void withdraw(OutgoingItem& item) noexcept;
  /// Ends the items whose deadline has passed.
  void expire(TimePoint now) noexcept;
  /// Drops all queued items.
  void close() noexcept;

  /// No deadline passes before; max: no queued item has one.
  [[nodiscard]] TimePoint next_expiry() const noexcept { return next_expiry_; }
  /// get() would return an item, unless all have expired.
  [[nodiscard]] bool ready() const noexcept;
  /// The item that get() would return, if it has not expired.
  [[nodiscard]] OutgoingItem* front() const noexcept;
  [[nodiscard]] std::uint64_t queued() const noexcept { return queued_; }
  [[nodiscard]] bool idle() const noexcept { return queued_ == 0 && in_flight_.get() == 0; }
  [[nodiscard]] policy::OutgoingState state() const noexcept {
    return counts_->state.load(std::memory_order_relaxed);
  }
  [[nodiscard]] policy::OutgoingFill fill() const noexcept;
  [[nodiscard]] OutgoingStats stats() const noexcept;

 private:
  using Items = IntrusiveList<OutgoingItem, &OutgoingItem::hook_>;
  using Place = OutgoingItem::Place;
  /// What a newcomer has been given so far, and who has to leave for it.
  struct Reservation;

  void count_refused(const OutgoingItem& item) noexcept;
  [[nodiscard]] OutgoingRefusal enter_critical(OutgoingItem& item) noexcept;
  [[nodiscard]] OutgoingRefusal enter(OutgoingItem& item, OutgoingPut& result) noexcept;
  [[nodiscard]] OutgoingRefusal reserve_bytes(Reservation& reserved) noexcept;
  [[nodiscard]] bool add_victim(Reservation& reserved) noexcept;
  void evict(Reservation& reserved, Items& victims) noexcept;
  void link(OutgoingItem& item, Place place) noexcept;
  void unlink(OutgoingItem& item) noexcept;
  void release_bytes(const OutgoingItem& item) noexcept;
  void end(OutgoingItem& item, OutgoingEnd how) noexcept;
  void promote() noexcept;
  void judge() noexcept;
  [[nodiscard]] std::size_t ring_size() const noexcept;
  [[nodiscard]] Items& items_of(Place place, Priority priority) noexcept;

  const OutgoingConfig* config_;
  OutgoingCounts* counts_;
  OutgoingTotals* totals_;
  std::array<Items, kPriorityCount> primary_;  // that of critical is its lane
  std::array<Items, kPriorityCount> ring_;
  std::uint64_t sequence_ = 0;
  std::uint64_t queued_ = 0;
  TimePoint next_expiry_ = TimePoint::max();
  OwnedCount in_flight_;  // critical ones included
  OwnedCount critical_in_flight_;
  OwnedCount queued_published_;
  OwnedCount offered_;
  std::array<OwnedCount, kOutgoingEndNames.size()> ends_;
  OwnedCount withdrawn_;
  OwnedCount critical_refused_;
};

}  // namespace weir::inline v0::inline control
