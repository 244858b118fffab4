#include "tls/handshake_slots.h"

#include "weir/base/assert.h"

namespace weir::inline v0::inline server {

HandshakeSlots::HandshakeSlots(Shape shape, policy::HandshakeRule rule)
    : reserved_(shape.reserved),
      waiting_max_(shape.waiting_max),
      rule_(rule),
      sources_(kSources),
      places_(shape.loops) {
  stats_.capacity = shape.count;
}

void HandshakeSlots::attach(std::uint32_t loop, io::Loop& on, io::Task& news) noexcept {
  const std::lock_guard lock(mutex_);
  places_[loop].loop = &on;
  places_[loop].task = &news;
}

bool HandshakeSlots::enter(Entrant& entrant, TimePoint now) {
  const std::lock_guard lock(mutex_);
  WEIR_ASSERT(entrant.state_ == Entrant::State::kOutside);
  const bool first = critical_.empty() && (entrant.who_.critical || ordinary() == 0);
  if (first && room_for(entrant.who_.critical)) {
    take(entrant);
    entrant.state_ = Entrant::State::kInside;
    return true;
  }
  ++stats_.exhausted;
  enqueue(entrant, now);
  if (ordinary() > waiting_max_) displace_one(now);
  take_from_stalled(now);
  return false;
}

void HandshakeSlots::wait_for_client(Entrant& entrant, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (entrant.state_ != Entrant::State::kInside) return;
  entrant.state_ = Entrant::State::kOnClient;
  entrant.since_ = now;
  on_client_.push_back(entrant);
}

void HandshakeSlots::leave(Entrant& entrant, Left how, TimePoint now) {
  const std::lock_guard lock(mutex_);
  switch (entrant.state_) {
    case Entrant::State::kOutside:
      return;
    case Entrant::State::kWaiting:
      dequeue(entrant, false);
      break;
    case Entrant::State::kDisplaced:
      places_[entrant.who_.loop].lost.remove(entrant);
      break;
    case Entrant::State::kGranted:
      places_[entrant.who_.loop].granted.remove(entrant);
      give_back(entrant);
      break;
    case Entrant::State::kOnClient:
      on_client_.remove(entrant);
      if (how == Left::kDone) {
        usual_.note(now - entrant.since_);
        source_of(entrant).stalled_at = TimePoint{};
      }
      give_back(entrant);
      break;
    case Entrant::State::kLosing:
      places_[entrant.who_.loop].lost.remove(entrant);
      [[fallthrough]];
    case Entrant::State::kLost:
      --losing_;
      [[fallthrough]];
    case Entrant::State::kInside:
      give_back(entrant);
      break;
  }
  entrant.state_ = Entrant::State::kOutside;
  hand_out(now);
}

void HandshakeSlots::reclaim(TimePoint now) {
  const std::lock_guard lock(mutex_);
  take_from_stalled(now);
}

/// Gives free slots to the queue.
void HandshakeSlots::hand_out(TimePoint now) {
  while (queued() > 0) {
    const bool critical = !critical_.empty();
    if (!room_for(critical)) return;
    Entrant& next = critical ? *critical_.front() : next_ordinary(now);
    dequeue(next, true);
    take(next);
    next.state_ = Entrant::State::kGranted;
    Place& place = places_[next.who_.loop];
    place.granted.push_back(next);
    if (place.loop != nullptr) place.loop->post(*place.task);
  }
}

HandshakeSlots::Entrant& HandshakeSlots::next_ordinary(TimePoint now) {
  const bool theirs = policy::is_stalled_turn(turn_++);
  const bool stalled = fresh_.turns.size() == 0 || (theirs && stalled_.turns.size() > 0);
  Line& line = stalled ? stalled_ : fresh_;
  const List& flow = line.flows[line.turns.next([](policy::FlowId) { return 1U; })];
  const Duration oldest_waited = now - flow.front()->since_;
  return policy::newest_first(oldest_waited, demand(), rule_) ? *flow.back() : *flow.front();
}

/// One slot for each that is queued, as far as there are some that may lose theirs.
void HandshakeSlots::take_from_stalled(TimePoint now) {
  constexpr int kAtOnce = 64;  // bounds the time under the mutex
  for (int i = 0; i < kAtOnce && losing_ < queued(); ++i) {
    Entrant* victim = first_to_lose(now);
    if (victim == nullptr) return;
    on_client_.remove(*victim);
    ++losing_;
    lose(*victim, Entrant::State::kLosing, now);
  }
}

HandshakeSlots::Entrant* HandshakeSlots::first_to_lose(TimePoint now) noexcept {
  const policy::SlotDemand wanted = demand();
  Entrant* worst = nullptr;
  policy::SlotHold worst_hold;
  for (Entrant& entrant : on_client_) {
    if (entrant.who_.critical) continue;
    const policy::SlotHold hold{.waited = now - entrant.since_, .held = source_of(entrant).held};
    if (!policy::may_lose(hold, wanted, rule_)) continue;
    if (worst != nullptr && !policy::loses_before(hold, worst_hold)) continue;
    worst = &entrant;
    worst_hold = hold;
  }
  return worst;
}

/// The queue is full: of the source with the most in it, the one that has waited longest goes;
/// first of the sources that stalled lately.
void HandshakeSlots::displace_one(TimePoint now) {
  Line& line = stalled_.turns.size() > 0 ? stalled_ : fresh_;
  Entrant& gone = *line.flows[line.turns.longest()].front();
  dequeue(gone, false);
  lose(gone, Entrant::State::kDisplaced, now);
}

void HandshakeSlots::lose(Entrant& entrant, Entrant::State into, TimePoint now) {
  entrant.state_ = into;
  source_of(entrant).stalled_at = now;
  Place& place = places_[entrant.who_.loop];
  place.lost.push_back(entrant);
  if (place.loop != nullptr) place.loop->post(*place.task);
}

void HandshakeSlots::tell(std::uint32_t loop) {
  while (true) {
    Entrant* next = nullptr;
    bool lost = false;
    {
      const std::lock_guard lock(mutex_);
      Place& place = places_[loop];
      next = place.lost.front();
      lost = next != nullptr;
      if (!lost) next = place.granted.front();
      if (next == nullptr) return;
      (lost ? place.lost : place.granted).remove(*next);
      next->state_ = !lost                                        ? Entrant::State::kInside
                     : next->state_ == Entrant::State::kDisplaced ? Entrant::State::kOutside
                                                                  : Entrant::State::kLost;
    }
    // It belongs to this loop, so it cannot leave meanwhile.
    lost ? next->on_lost() : next->on_slot();
  }
}

void HandshakeSlots::enqueue(Entrant& entrant, TimePoint now) {
  entrant.state_ = Entrant::State::kWaiting;
  entrant.since_ = now;
  count(entrant, &Source::waiting, 1);
  if (entrant.who_.critical) return critical_.push_back(entrant);
  const TimePoint stalled_at = source_of(entrant).stalled_at;
  entrant.stalled_ = stalled_at != TimePoint{} && policy::stalled_lately(now - stalled_at, rule_);
  Line& line = line_of(entrant);
  entrant.flow_ = line.turns.flow_for(entrant.who_.source);
  line.flows[entrant.flow_].push_back(entrant);
  line.turns.add(entrant.flow_, entrant.who_.source, 1);
}

void HandshakeSlots::dequeue(Entrant& entrant, bool served) {
  count(entrant, &Source::waiting, -1);
  if (entrant.who_.critical) return critical_.remove(entrant);
  Line& line = line_of(entrant);
  line.flows[entrant.flow_].remove(entrant);
  served ? line.turns.serve(entrant.flow_, 1) : line.turns.remove(entrant.flow_);
}

void HandshakeSlots::take(Entrant& entrant) noexcept {
  if (++stats_.used > stats_.peak) stats_.peak = stats_.used;
  count(entrant, &Source::held, 1);
}

void HandshakeSlots::give_back(Entrant& entrant) noexcept {
  --stats_.used;
  count(entrant, &Source::held, -1);
}

void HandshakeSlots::count(Entrant& entrant, std::uint32_t Source::*what,
                           std::int32_t change) noexcept {
  Source& source = source_of(entrant);
  const bool before = source.held + source.waiting > 0;
  source.*what += static_cast<std::uint32_t>(change);
  const bool after = source.held + source.waiting > 0;
  if (before != after) after ? ++active_sources_ : --active_sources_;
}

policy::SlotDemand HandshakeSlots::demand() const noexcept {
  return {.slots = static_cast<std::uint32_t>(stats_.capacity) - reserved_,
          .sources = active_sources_,
          .usual = usual_.value()};
}

PoolStats HandshakeSlots::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::uint32_t HandshakeSlots::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(queued());
}

}  // namespace weir::inline v0::inline server
