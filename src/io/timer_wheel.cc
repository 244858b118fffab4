#include "timer_wheel.h"

#include <algorithm>
#include <bit>

#include "weir/base/assert.h"

namespace weir::inline v0::io {

Timer::~Timer() {
  WEIR_ASSERT(!armed());
}

TimerWheel::~TimerWheel() {
  for (Timer*& head : heads_) {
    while (head != nullptr) unlink(*head);
  }
}

void TimerWheel::arm(Timer& timer, TimePoint deadline) noexcept {
  if (timer.armed()) unlink(timer);
  timer.deadline_ = deadline;
  place(timer);
}

void TimerWheel::place(Timer& timer) noexcept {
  // Half a round of the top level (about a year): later deadlines are placed there, then again.
  constexpr std::int64_t kReach = std::int64_t{1} << (kLevels * kDigitBits - 1);
  std::int64_t tick = floor_tick(timer.deadline_ + (kTick - Duration(1)));  // never early
  tick = std::clamp(tick, now_tick_ + 1, now_tick_ + kReach);
  const auto differing = static_cast<std::uint64_t>(tick ^ now_tick_);
  const unsigned digit = (63U - static_cast<unsigned>(std::countl_zero(differing))) / kDigitBits;
  const unsigned level = std::min(digit, kLevels - 1);
  const auto slot =
      static_cast<unsigned>(static_cast<std::uint64_t>(tick) >> (level * kDigitBits)) % kSlots;
  timer.slot_ = static_cast<std::uint16_t>(level * kSlots + slot);

  Timer*& head = heads_[timer.slot_];
  if (head == nullptr) {
    timer.next_ = &timer;
    timer.previous_ = &timer;
    head = &timer;
    used_[level] |= std::uint64_t{1} << slot;
  } else {
    timer.next_ = head;
    timer.previous_ = head->previous_;
    head->previous_->next_ = &timer;
    head->previous_ = &timer;
  }
  ++size_;
}

void TimerWheel::unlink(Timer& timer) noexcept {
  WEIR_ASSERT(timer.next_ != nullptr && timer.previous_ != nullptr);
  const unsigned index = timer.slot_;
  Timer*& head = heads_[index];
  if (timer.next_ == &timer) {
    head = nullptr;
    used_[index / kSlots] &= ~(std::uint64_t{1} << (index % kSlots));
  } else {
    timer.previous_->next_ = timer.next_;
    timer.next_->previous_ = timer.previous_;
    if (head == &timer) head = timer.next_;
  }
  timer.next_ = nullptr;
  timer.previous_ = nullptr;
  timer.slot_ = Timer::kIdle;
  --size_;
}

std::optional<TimerWheel::Opening> TimerWheel::next_opening() const noexcept {
  for (unsigned level = 0; level < kLevels; ++level) {
    if (used_[level] == 0) continue;
    const unsigned shift = level * kDigitBits;
    const auto here =
        static_cast<unsigned>(static_cast<std::uint64_t>(now_tick_) >> shift) % kSlots;
    // Slots from the wheel's own digit on, in order of time; the top level may wrap.
    const std::uint64_t ahead = std::rotr(used_[level], static_cast<int>(here));
    const auto distance = static_cast<unsigned>(std::countr_zero(ahead));
    const std::int64_t digits = (now_tick_ >> shift) + distance;
    return Opening{digits << shift, level * kSlots + (here + distance) % kSlots};
  }
  return std::nullopt;
}

std::size_t TimerWheel::advance(TimePoint now) {
  const std::int64_t target = floor_tick(now);
  std::size_t fired = 0;
  for (std::optional<Opening> next = next_opening(); next && next->tick <= target;
       next = next_opening()) {
    now_tick_ = next->tick;
    Timer*& head = heads_[next->slot];
    while (head != nullptr) {
      Timer& timer = *head;
      unlink(timer);
      if (timer.deadline_ > now ||
          floor_tick(timer.deadline_ + (kTick - Duration(1))) > now_tick_) {
        place(timer);  // a slot of a higher level was opened, or the deadline was out of reach
        continue;
      }
      ++fired;
      const Timer::Fired callback = timer.fired_;  // the callback may destroy the timer
      callback(now);
    }
  }
  now_tick_ = std::max(now_tick_, target);
  return fired;
}

std::optional<TimePoint> TimerWheel::next_wake() const noexcept {
  const std::optional<Opening> next = next_opening();
  if (!next) return std::nullopt;
  return TimePoint(next->tick * kTick);
}

}  // namespace weir::inline v0::io
