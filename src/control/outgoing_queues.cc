#include "weir/control/outgoing_queues.h"

#include <mutex>
#include <utility>

#include "weir/base/assert.h"

#include "key_table.h"

namespace weir::inline v0::inline control {

// ---- the directory

struct OutgoingDirectory::Entry {
  explicit Entry(DestinationKey its_key) noexcept : key(its_key) {}
  OutgoingCounts counts;
  DestinationKey key;
  ListHook<Entry> chain;
  std::uint32_t users = 0;
};

struct OutgoingDirectory::Entries {
  explicit Entries(std::uint32_t capacity) : table(capacity) {}
  std::mutex mutex;
  KeyTable<Entry> table;
};

OutgoingDirectory::OutgoingDirectory(const OutgoingConfig& config)
    : config_(config), entries_(std::make_unique<Entries>(config.max_destinations)) {}

OutgoingDirectory::~OutgoingDirectory() {
  WEIR_ASSERT(entries_->table.size() == 0);
}

OutgoingCounts* OutgoingDirectory::acquire(DestinationKey key) {
  const std::scoped_lock lock(entries_->mutex);
  Entry* entry = entries_->table.find(key);
  if (entry == nullptr) entry = entries_->table.add(key);
  if (entry == nullptr) return nullptr;
  ++entry->users;
  return &entry->counts;
}

void OutgoingDirectory::release(DestinationKey key) {
  const std::scoped_lock lock(entries_->mutex);
  Entry* entry = entries_->table.find(key);
  WEIR_ASSERT(entry != nullptr && entry->users > 0);
  if (--entry->users == 0) entries_->table.remove(*entry);
}

policy::OutgoingState OutgoingDirectory::state(DestinationKey key) const {
  const std::scoped_lock lock(entries_->mutex);
  const Entry* entry = entries_->table.find(key);
  return entry == nullptr ? policy::OutgoingState::kHealthy
                          : entry->counts.state.load(std::memory_order_relaxed);
}

std::size_t OutgoingDirectory::destinations() const {
  const std::scoped_lock lock(entries_->mutex);
  return entries_->table.size();
}

// ---- one loop's queues

/// A destination is unused, or has its turn, or is in neither list: it waits for a place in flight.
struct OutgoingQueues::Destination : OutgoingQueue {
  Destination(DestinationKey its_key, const OutgoingConfig& config, OutgoingCounts& counts,
              OutgoingTotals& totals) noexcept
      : OutgoingQueue(config, counts, totals), key(its_key) {}
  /// Every queue of this table is one.
  [[nodiscard]] static Destination& of(const OutgoingItem& item) noexcept {
    WEIR_ASSERT(item.queue() != nullptr);
    return static_cast<Destination&>(*item.queue());
  }
  DestinationKey key;
  ListHook<Destination> chain;
  ListHook<Destination> unused;  // the longest idle first
  ListHook<Destination> turn;    // in the order in which they are served
};

struct OutgoingQueues::Table {
  explicit Table(std::uint32_t capacity) : destinations(capacity) {}
  KeyTable<Destination> destinations;
  IntrusiveList<Destination, &Destination::unused> idle;
  IntrusiveList<Destination, &Destination::turn> ready;
};

OutgoingQueues::OutgoingQueues(OutgoingDirectory& directory)
    : directory_(directory), table_(std::make_unique<Table>(directory.config().max_destinations)) {}

OutgoingQueues::~OutgoingQueues() {
  while (give_up_oldest()) {
  }
  WEIR_ASSERT(table_->destinations.size() == 0);
}

OutgoingQueues::Destination* OutgoingQueues::destination_at(DestinationKey key) const noexcept {
  return table_->destinations.find(key);
}

OutgoingQueues::Destination* OutgoingQueues::find_or_add(DestinationKey key) noexcept {
  if (Destination* known = destination_at(key)) return known;
  if (table_->destinations.full() && !give_up_oldest()) return nullptr;
  OutgoingCounts* counts = directory_.acquire(key);
  // An idle queue frees a place only if no other loop uses its destination.
  while (counts == nullptr && give_up_oldest()) counts = directory_.acquire(key);
  if (counts == nullptr) {
    directory_.refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  return table_->destinations.add(key, directory_.config(), *counts, directory_.totals());
}

bool OutgoingQueues::give_up_oldest() noexcept {
  Destination* oldest = table_->idle.front();
  if (oldest == nullptr) return false;
  give_up(*oldest);
  return true;
}

void OutgoingQueues::give_up(Destination& destination) noexcept {
  ended_ += destination.stats();
  table_->idle.remove(destination);
  const DestinationKey key = destination.key;
  table_->destinations.remove(destination);
  directory_.release(key);
}

/// Puts a destination into the list that fits it, after anything has changed.
void OutgoingQueues::settle(Destination& destination) noexcept {
  const bool ready = destination.ready();
  if (ready && !destination.turn.linked()) table_->ready.push_back(destination);
  if (!ready && destination.turn.linked()) table_->ready.remove(destination);
  if (destination.unused.linked()) table_->idle.remove(destination);
  if (destination.idle()) table_->idle.push_back(destination);
}

OutgoingPut OutgoingQueues::put(DestinationKey key, OutgoingItem& item, TimePoint now) noexcept {
  Destination* destination = find_or_add(key);
  if (destination == nullptr) {
    ++ended_.offered;
    ++ended_.refused;
    if (item.priority == Priority::kCritical) ++ended_.critical_refused;
    constexpr auto kState = policy::OutgoingState::kSaturated;
    return {.refusal = OutgoingRefusal::kNoDestination,
            .state = kState,
            .fill_permille = 1000,
            .advice = policy::advice_of(kState, directory_.config().advice)};
  }
  const OutgoingPut result = destination->put(item, now);
  settle(*destination);
  return result;
}

OutgoingItem* OutgoingQueues::get(DestinationKey key, TimePoint now) noexcept {
  Destination* destination = destination_at(key);
  if (destination == nullptr) return nullptr;
  OutgoingItem* item = destination->get(now);
  settle(*destination);
  return item;
}

OutgoingItem* OutgoingQueues::next(TimePoint now) noexcept {
  while (Destination* destination = table_->ready.pop_front()) {
    OutgoingItem* item = destination->get(now);
    settle(*destination);  // to the back, if it has more
    if (item != nullptr) return item;
  }
  return nullptr;
}

DestinationKey OutgoingQueues::destination_of(const OutgoingItem& item) noexcept {
  return Destination::of(item).key;
}

void OutgoingQueues::finish(OutgoingItem& item, OutgoingEnd how) noexcept {
  Destination& destination = Destination::of(item);
  destination.finish(item, how);
  settle(destination);
}

void OutgoingQueues::withdraw(OutgoingItem& item) noexcept {
  Destination& destination = Destination::of(item);
  destination.withdraw(item);
  settle(destination);
}

void OutgoingQueues::expire(TimePoint now) noexcept {
  table_->destinations.for_each([&](Destination& destination) {
    if (destination.next_expiry() > now) return;
    destination.expire(now);
    settle(destination);
  });
  if (std::exchange(refused_seen_, directory_.refused()) == directory_.refused()) return;
  while (give_up_oldest()) {
  }
}

void OutgoingQueues::close() noexcept {
  table_->destinations.for_each([&](Destination& destination) {
    destination.close();
    settle(destination);
  });
}

policy::OutgoingState OutgoingQueues::state(DestinationKey key) const noexcept {
  const Destination* destination = destination_at(key);
  return destination == nullptr ? directory_.state(key) : destination->state();
}

const OutgoingQueue* OutgoingQueues::find(DestinationKey key) const noexcept {
  const Destination* destination = destination_at(key);
  return destination;
}

std::size_t OutgoingQueues::size() const noexcept {
  return table_->destinations.size();
}

OutgoingStats OutgoingQueues::stats() const noexcept {
  OutgoingStats sum = ended_;
  table_->destinations.for_each(
      [&](const Destination& destination) { sum += destination.stats(); });
  return sum;
}

}  // namespace weir::inline v0::inline control
