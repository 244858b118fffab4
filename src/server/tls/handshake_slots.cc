#include "tls/handshake_slots.h"

#include "weir/base/assert.h"

namespace weir::inline v0::inline server {

HandshakeSlots::HandshakeSlots(Shape shape) : reserved_(shape.reserved), places_(shape.loops) {
  stats_.capacity = shape.count;
}

void HandshakeSlots::attach(std::uint32_t loop, io::Loop& on, io::Task& granted) noexcept {
  const std::lock_guard lock(mutex_);
  places_[loop].loop = &on;
  places_[loop].task = &granted;
}

bool HandshakeSlots::enter(Entrant& entrant) {
  const std::lock_guard lock(mutex_);
  WEIR_ASSERT(entrant.state_ == Entrant::State::kOutside);
  const bool first = critical_.empty() && (entrant.critical_ || ordinary_.empty());
  if (first && room_for(entrant.critical_)) {
    take();
    entrant.state_ = Entrant::State::kInside;
    return true;
  }
  ++stats_.exhausted;
  entrant.state_ = Entrant::State::kWaiting;
  (entrant.critical_ ? critical_ : ordinary_).push_back(entrant);
  return false;
}

void HandshakeSlots::leave(Entrant& entrant) {
  const std::lock_guard lock(mutex_);
  switch (entrant.state_) {
    case Entrant::State::kOutside:
      return;
    case Entrant::State::kWaiting:
      (entrant.critical_ ? critical_ : ordinary_).remove(entrant);
      break;
    case Entrant::State::kGranted:
      places_[entrant.loop_].granted.remove(entrant);
      --stats_.used;
      break;
    case Entrant::State::kInside:
      --stats_.used;
      break;
  }
  entrant.state_ = Entrant::State::kOutside;
  hand_out();
}

/// Gives free slots to the first in the queue.
void HandshakeSlots::hand_out() {
  while (true) {
    const bool critical = !critical_.empty();
    List& line = critical ? critical_ : ordinary_;
    if (line.empty() || !room_for(critical)) return;
    Entrant& next = *line.front();
    line.remove(next);
    take();
    next.state_ = Entrant::State::kGranted;
    Place& place = places_[next.loop_];
    place.granted.push_back(next);
    if (place.loop != nullptr) place.loop->post(*place.task);
  }
}

void HandshakeSlots::tell(std::uint32_t loop) {
  while (true) {
    Entrant* next = nullptr;
    {
      const std::lock_guard lock(mutex_);
      next = places_[loop].granted.front();
      if (next == nullptr) return;
      places_[loop].granted.remove(*next);
      next->state_ = Entrant::State::kInside;
    }
    next->on_slot();  // it belongs to this loop, so it cannot leave meanwhile
  }
}

PoolStats HandshakeSlots::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::uint32_t HandshakeSlots::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(critical_.size() + ordinary_.size());
}

}  // namespace weir::inline v0::inline server
