#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/base/time.h"
#include "weir/control/outgoing_config.h"
#include "weir/control/outgoing_item.h"
#include "weir/control/outgoing_queue.h"

namespace weir::inline v0::inline control {

/// Names a destination: any number that its owner gives it.
using DestinationKey = std::uint64_t;

/// The destinations that have a queue, and what all loops hold for each: shared by the
/// OutgoingQueues of all loops.
///
/// Promises: at most max_destinations entries, however many loops use each. An entry exists while a
/// loop has a queue for it. All memory is reserved at construction.
/// Thread-safety: any member, any thread; acquire() and release() take a lock, once per queue that
/// is made or ended. Lifetime: outlives its OutgoingQueues.
class OutgoingDirectory {
 public:
  explicit OutgoingDirectory(const OutgoingConfig& config);
  OutgoingDirectory(const OutgoingDirectory&) = delete;
  OutgoingDirectory& operator=(const OutgoingDirectory&) = delete;
  ~OutgoingDirectory();

  [[nodiscard]] const OutgoingConfig& config() const noexcept { return config_; }
  [[nodiscard]] OutgoingTotals& totals() noexcept { return totals_; }
  [[nodiscard]] std::size_t destinations() const;
  /// What all loops hold for this destination; healthy if none has a queue for it.
  [[nodiscard]] policy::OutgoingState state(DestinationKey key) const;
  /// How often a destination got no queue; loops then give up queues that they do not use.
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }

 private:
  friend class OutgoingQueues;
  struct Entry;
  struct Entries;

  /// nullptr: there are as many as allowed.
  [[nodiscard]] OutgoingCounts* acquire(DestinationKey key);
  void release(DestinationKey key);

  OutgoingTotals totals_;
  std::atomic<std::uint64_t> refused_{0};
  const OutgoingConfig config_;
  std::unique_ptr<Entries> entries_;
};

/// One loop's queues, one per destination. A slow destination fills its own queue and nothing else.
///
/// A queue is made by the first put() for its destination. If there are too many, the one that was
/// not used for the longest time and is empty makes room; a queue that holds anything is never
/// given up, so the new destination is refused if there is no other.
///
/// Promises: those of OutgoingQueue. next() serves destinations in turn.
/// Thread-safety: its owner's thread; several instances share a directory.
/// Cost: O(1) expected; no allocation after construction.
/// Lifetime: close() first, with no item in flight; within that of the directory.
class OutgoingQueues {
 public:
  explicit OutgoingQueues(OutgoingDirectory& directory);
  OutgoingQueues(const OutgoingQueues&) = delete;
  OutgoingQueues& operator=(const OutgoingQueues&) = delete;
  ~OutgoingQueues();

  OutgoingPut put(DestinationKey key, OutgoingItem& item, TimePoint now) noexcept;
  /// The next item of this destination; as OutgoingQueue::get().
  [[nodiscard]] OutgoingItem* get(DestinationKey key, TimePoint now) noexcept;
  /// The next item of the next destination that has one and may send it.
  [[nodiscard]] OutgoingItem* next(TimePoint now) noexcept;
  void finish(OutgoingItem& item, OutgoingEnd how) noexcept;
  void withdraw(OutgoingItem& item) noexcept;
  /// Ends expired items, and gives up unused queues if a destination was refused anywhere.
  void expire(TimePoint now) noexcept;
  void close() noexcept;

  [[nodiscard]] static DestinationKey destination_of(const OutgoingItem& item) noexcept;
  /// The state of this destination over all loops. Takes the directory's lock if this loop has no
  /// queue for it.
  [[nodiscard]] policy::OutgoingState state(DestinationKey key) const noexcept;
  /// nullptr: it has none. Valid until the next call that may end a queue: put(), expire().
  [[nodiscard]] const OutgoingQueue* find(DestinationKey key) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  /// Of all queues, those that were given up included.
  [[nodiscard]] OutgoingStats stats() const noexcept;

 private:
  struct Destination;
  struct Table;

  [[nodiscard]] Destination* find_or_add(DestinationKey key) noexcept;
  [[nodiscard]] Destination* destination_at(DestinationKey key) const noexcept;
  [[nodiscard]] bool give_up_oldest() noexcept;
  void give_up(Destination& destination) noexcept;
  void settle(Destination& destination) noexcept;

  OutgoingDirectory& directory_;
  std::unique_ptr<Table> table_;
  OutgoingStats ended_;  // of queues that were given up, and of refused destinations
  std::uint64_t refused_seen_ = 0;
};

}  // namespace weir::inline v0::inline control
