#include "weir/control/outgoing_queue.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::inline control {
namespace {

bool has_expired(const OutgoingItem& item, TimePoint now) noexcept {
  return item.deadline != TimePoint{} && item.deadline <= now;
}

}  // namespace

/// Victims are only looked at until everything is reserved: a newcomer that is refused drops none.
/// Their places and bytes pass to the newcomer without being free in between, so no other thread
/// can take them.
struct OutgoingQueue::Reservation {
  OutgoingItem& item;
  Place place = Place::kNone;     // kNone: it takes that of a victim
  std::uint32_t victims = 0;      // how many leave
  std::uint64_t credit = 0;       // their bytes
  OutgoingItem* last = nullptr;   // the last of them
  std::uint64_t bytes_added = 0;  // taken from the shared counts
};

OutgoingQueue::~OutgoingQueue() {
  WEIR_ASSERT(idle());
}

// ---- lists

OutgoingQueue::Items& OutgoingQueue::items_of(Place place, Priority priority) noexcept {
  return (place == Place::kRing ? ring_ : primary_)[index_of(priority)];
}

std::size_t OutgoingQueue::ring_size() const noexcept {
  std::size_t size = 0;
  for (const Items& items : ring_) size += items.size();
  return size;
}

void OutgoingQueue::link(OutgoingItem& item, Place place) noexcept {
  item.place_ = place;
  items_of(place, item.priority).push_back(item);
}

/// Unlinks a queued item and gives its place back; its bytes stay charged.
void OutgoingQueue::unlink(OutgoingItem& item) noexcept {
  items_of(item.place_, item.priority).remove(item);
  switch (item.place_) {
    case Place::kCritical:
      counts_->critical.sub(1);
      break;
    case Place::kPrimary:
      counts_->primary.sub(1);
      break;
    case Place::kRing:
      counts_->ring.sub(1);
      break;
    case Place::kNone:
    case Place::kInFlight:
      WEIR_UNREACHABLE();
  }
  --queued_;
}

void OutgoingQueue::release_bytes(const OutgoingItem& item) noexcept {
  const bool critical = item.priority == Priority::kCritical;
  (critical ? counts_->critical_bytes : counts_->bytes).sub(item.bytes);
  (critical ? totals_->critical_bytes : totals_->bytes).sub(item.bytes);
}

/// The item is in no list any more. The callback comes last: it may offer the item again.
void OutgoingQueue::end(OutgoingItem& item, OutgoingEnd how) noexcept {
  ends_[static_cast<std::size_t>(how)].add();
  item.place_ = Place::kNone;
  item.queue_ = nullptr;
  if (item.on_end_ != nullptr) item.on_end_(item, how);
}

/// After a change the fill is read once more: another loop may have changed it meanwhile, and found
/// nothing to do in the state that it saw. So the state never stays behind the counts.
void OutgoingQueue::judge() noexcept {
  queued_published_.add(queued_ - queued_published_.get());
  policy::OutgoingState seen = counts_->state.load();
  for (;;) {
    const policy::OutgoingState next = policy::outgoing_state(seen, fill());
    if (next == seen) return;
    if (counts_->state.compare_exchange_weak(seen, next)) seen = next;
  }
}

// ---- put

OutgoingPut OutgoingQueue::put(OutgoingItem& item, TimePoint now) noexcept {
  WEIR_ASSERT(item.place_ == Place::kNone);
  offered_.add();
  OutgoingPut result;
  if (has_expired(item, now)) {
    result.refusal = OutgoingRefusal::kDeadline;
  } else if (item.priority == Priority::kCritical) {
    result.refusal = enter_critical(item);
  } else {
    result.refusal = enter(item, result);
  }
  if (result.accepted()) {
    if (item.deadline != TimePoint{}) next_expiry_ = std::min(next_expiry_, item.deadline);
  } else {
    count_refused(item);
  }
  judge();
  result.state = state();
  result.fill_permille = fill().permille();
  result.advice = policy::advice_of(result.state, config_->advice);
  return result;
}

void OutgoingQueue::refuse(const OutgoingItem& item) noexcept {
  offered_.add();
  count_refused(item);
}

void OutgoingQueue::count_refused(const OutgoingItem& item) noexcept {
  ends_[static_cast<std::size_t>(OutgoingEnd::kRefused)].add();
  if (item.priority == Priority::kCritical) critical_refused_.add();
}

OutgoingRefusal OutgoingQueue::enter_critical(OutgoingItem& item) noexcept {
  const std::uint64_t bytes_max = config_->destination_bytes_max.bytes();
  if (item.bytes > bytes_max) return OutgoingRefusal::kTooLarge;
  if (!counts_->critical.try_add(1, config_->critical_size)) return OutgoingRefusal::kFull;
  if (!counts_->critical_bytes.try_add(item.bytes, bytes_max)) {
    counts_->critical.sub(1);
    return OutgoingRefusal::kBytes;
  }
  if (!totals_->critical_bytes.try_add(item.bytes, config_->total_bytes_max.bytes())) {
    counts_->critical_bytes.sub(item.bytes);
    counts_->critical.sub(1);
    return OutgoingRefusal::kTotalBytes;
  }
  item.queue_ = this;
  item.sequence_ = ++sequence_;
  link(item, Place::kCritical);
  ++queued_;
  return OutgoingRefusal::kNone;
}

OutgoingRefusal OutgoingQueue::enter(OutgoingItem& item, OutgoingPut& result) noexcept {
  if (item.bytes > config_->destination_bytes_max.bytes()) return OutgoingRefusal::kTooLarge;
  Reservation reserved{.item = item};
  if (ring_size() == 0 && counts_->primary.try_add(1, config_->queue_size)) {
    reserved.place = Place::kPrimary;
  } else if (counts_->ring.try_add(1, config_->overflow_size)) {
    reserved.place = Place::kRing;
  } else if (!add_victim(reserved)) {
    return OutgoingRefusal::kFull;
  }
  const OutgoingRefusal refusal = reserve_bytes(reserved);
  if (refusal != OutgoingRefusal::kNone) {
    if (reserved.place == Place::kPrimary) counts_->primary.sub(1);
    if (reserved.place == Place::kRing) counts_->ring.sub(1);
    return refusal;
  }
  Items victims;
  evict(reserved, victims);
  result.dropped = reserved.victims;
  result.in_ring = reserved.place == Place::kRing;
  item.queue_ = this;
  item.sequence_ = ++sequence_;
  link(item, reserved.place);
  ++queued_;
  judge();
  while (OutgoingItem* victim = victims.pop_front()) end(*victim, OutgoingEnd::kDropped);
  return OutgoingRefusal::kNone;
}

/// Marks the next item of the ring that may leave for this newcomer: lowest class first, oldest
/// first. False: there is none.
bool OutgoingQueue::add_victim(Reservation& reserved) noexcept {
  std::size_t at = kPriorityCount - 1;
  OutgoingItem* next = nullptr;
  if (reserved.last != nullptr) {
    at = index_of(reserved.last->priority);
    next = ring_[at].next(*reserved.last);
    if (next == nullptr) --at;
  }
  while (next == nullptr && at >= index_of(reserved.item.priority)) next = ring_[at--].front();
  if (next == nullptr) return false;
  reserved.last = next;
  reserved.credit += next->bytes;
  ++reserved.victims;
  return true;
}

/// Takes what the newcomer needs beyond the bytes of its victims; marks more of them until it fits.
OutgoingRefusal OutgoingQueue::reserve_bytes(Reservation& reserved) noexcept {
  for (;;) {
    const std::uint64_t bytes = reserved.item.bytes;
    const std::uint64_t missing = bytes > reserved.credit ? bytes - reserved.credit : 0;
    OutgoingRefusal refusal = OutgoingRefusal::kNone;
    if (!counts_->bytes.try_add(missing, config_->destination_bytes_max.bytes())) {
      refusal = OutgoingRefusal::kBytes;
    } else if (!totals_->bytes.try_add(missing, config_->total_bytes_max.bytes())) {
      counts_->bytes.sub(missing);
      refusal = OutgoingRefusal::kTotalBytes;
    }
    reserved.bytes_added = missing;
    if (refusal == OutgoingRefusal::kNone || !add_victim(reserved)) return refusal;
  }
}

/// Unlinks the marked items, and settles places and bytes between them and the newcomer.
void OutgoingQueue::evict(Reservation& reserved, Items& victims) noexcept {
  for (std::uint32_t left = reserved.victims; left > 0; --left) {
    OutgoingItem* victim = nullptr;
    for (std::size_t c = kPriorityCount; victim == nullptr && c > 0;) victim = ring_[--c].front();
    WEIR_ASSERT(victim != nullptr);
    ring_[index_of(victim->priority)].remove(*victim);
    --queued_;
    if (reserved.place == Place::kNone) {
      reserved.place = Place::kRing;  // its place is the newcomer's
    } else {
      counts_->ring.sub(1);
    }
    victims.push_back(*victim);
  }
  const std::uint64_t given = reserved.credit + reserved.bytes_added;
  const std::uint64_t surplus = given - reserved.item.bytes;
  counts_->bytes.sub(surplus);
  totals_->bytes.sub(surplus);
}

// ---- get

bool OutgoingQueue::ready() const noexcept {
  if (!primary_[index_of(Priority::kCritical)].empty()) return true;
  const std::uint64_t others = in_flight_.get() - critical_in_flight_.get();
  return queued_ > 0 && others < config_->in_flight_max;
}

OutgoingItem* OutgoingQueue::front() const noexcept {
  if (!ready()) return nullptr;
  for (std::size_t c = 0; c < kPriorityCount; ++c) {
    if (OutgoingItem* item = primary_[c].front()) return item;
    if (OutgoingItem* item = ring_[c].front())
      return item;  // newer than the primary's of its class
  }
  return nullptr;
}

/// Moves the oldest items of the ring to the primary queue, as far as there is room.
void OutgoingQueue::promote() noexcept {
  for (;;) {
    OutgoingItem* oldest = nullptr;
    for (const Items& items : ring_) {
      OutgoingItem* item = items.front();
      if (item != nullptr && (oldest == nullptr || item->sequence_ < oldest->sequence_)) {
        oldest = item;
      }
    }
    if (oldest == nullptr || !counts_->primary.try_add(1, config_->queue_size)) return;
    ring_[index_of(oldest->priority)].remove(*oldest);
    counts_->ring.sub(1);
    link(*oldest, Place::kPrimary);
  }
}

OutgoingItem* OutgoingQueue::get(TimePoint now) noexcept {
  for (;;) {
    OutgoingItem* item = front();
    if (item == nullptr) return nullptr;
    unlink(*item);
    const bool expired = has_expired(*item, now);
    if (expired) {
      release_bytes(*item);
    } else {
      item->place_ = Place::kInFlight;
      in_flight_.add();
      if (item->priority == Priority::kCritical) critical_in_flight_.add();
    }
    promote();
    judge();
    if (!expired) return item;
    end(*item, OutgoingEnd::kExpired);
  }
}

void OutgoingQueue::finish(OutgoingItem& item, OutgoingEnd how) noexcept {
  WEIR_ASSERT(item.queue_ == this && item.in_flight());
  WEIR_ASSERT(how == OutgoingEnd::kSent || how == OutgoingEnd::kFailed);
  in_flight_.sub();
  if (item.priority == Priority::kCritical) critical_in_flight_.sub();
  release_bytes(item);
  judge();
  end(item, how);
}

// ---- other ends

void OutgoingQueue::withdraw(OutgoingItem& item) noexcept {
  WEIR_ASSERT(item.queue_ == this && item.queued());
  unlink(item);
  release_bytes(item);
  promote();
  judge();
  withdrawn_.add();
  ends_[static_cast<std::size_t>(OutgoingEnd::kFailed)].add();
  item.place_ = Place::kNone;
  item.queue_ = nullptr;
}

void OutgoingQueue::expire(TimePoint now) noexcept {
  if (now < next_expiry_) return;
  Items over;
  next_expiry_ = TimePoint::max();
  for (auto* lanes : {&primary_, &ring_}) {
    for (Items& items : *lanes) {
      for (OutgoingItem* item = items.front(); item != nullptr;) {
        OutgoingItem* const next = items.next(*item);
        if (has_expired(*item, now)) {
          unlink(*item);
          release_bytes(*item);
          over.push_back(*item);
        } else if (item->deadline != TimePoint{}) {
          next_expiry_ = std::min(next_expiry_, item->deadline);
        }
        item = next;
      }
    }
  }
  promote();
  judge();
  while (OutgoingItem* item = over.pop_front()) end(*item, OutgoingEnd::kExpired);
}

void OutgoingQueue::close() noexcept {
  Items all;
  for (auto* lanes : {&primary_, &ring_}) {
    for (Items& items : *lanes) {
      while (OutgoingItem* item = items.front()) {
        unlink(*item);
        release_bytes(*item);
        all.push_back(*item);
      }
    }
  }
  next_expiry_ = TimePoint::max();
  judge();
  while (OutgoingItem* item = all.pop_front()) end(*item, OutgoingEnd::kDropped);
}

// ---- reading

policy::OutgoingFill OutgoingQueue::fill() const noexcept {
  return {.primary = counts_->primary.held(),
          .primary_max = config_->queue_size,
          .ring = counts_->ring.held(),
          .ring_max = config_->overflow_size,
          .bytes = counts_->bytes.held(),
          .bytes_max = config_->destination_bytes_max.bytes()};
}

OutgoingStats& OutgoingStats::operator+=(const OutgoingStats& more) noexcept {
  offered += more.offered;
  sent += more.sent;
  failed += more.failed;
  withdrawn += more.withdrawn;
  dropped += more.dropped;
  refused += more.refused;
  expired += more.expired;
  critical_refused += more.critical_refused;
  queued += more.queued;
  in_flight += more.in_flight;
  return *this;
}

OutgoingStats OutgoingQueue::stats() const noexcept {
  const auto ended = [this](OutgoingEnd how) { return ends_[static_cast<std::size_t>(how)].get(); };
  return {.offered = offered_.get(),
          .sent = ended(OutgoingEnd::kSent),
          .failed = ended(OutgoingEnd::kFailed),
          .withdrawn = withdrawn_.get(),
          .dropped = ended(OutgoingEnd::kDropped),
          .refused = ended(OutgoingEnd::kRefused),
          .expired = ended(OutgoingEnd::kExpired),
          .critical_refused = critical_refused_.get(),
          .queued = queued_published_.get(),
          .in_flight = in_flight_.get()};
}

}  // namespace weir::inline v0::inline control
