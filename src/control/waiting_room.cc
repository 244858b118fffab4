#include "waiting_room.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::inline control {

namespace {

bool hopeless(std::size_t ahead, double capacity_per_second, Duration patience) noexcept {
  const double wait_s = static_cast<double>(ahead + 1) / capacity_per_second;
  return wait_s > to_seconds(patience);
}

Reason reason_of(TimePoint deadline, TimePoint now) noexcept {
  return deadline != TimePoint{} && deadline <= now ? Reason::kDeadline : Reason::kOverload;
}

}  // namespace

// Ends the wait of a waiter, under the lock. The state is stored before the callback, and settle()
// and leave() take the lock, so the owner cannot free the waiter while the callback runs.
void WaitingRoom::decide(Waiter& waiter, Waiter::State state, Reason reason) noexcept {
  line_of(waiter.priority_).remove(waiter, state == Waiter::State::kGranted);
  waiter.reason_ = reason;
  waiter.state_.store(state, std::memory_order_release);
  if (!waiter.entering_ && waiter.on_ready_ != nullptr) waiter.on_ready_(waiter);
}

void WaitingRoom::refuse(Waiter& waiter, Reason reason, TimePoint now) noexcept {
  if (reason == Reason::kOverload) {
    line_of(waiter.priority_).standing.note_refused(waiter.entered_at_, now);
  }
  decide(waiter, Waiter::State::kRefused, reason);
}

void WaitingRoom::publish(TimePoint now) noexcept {
  high_.standing.set_occupied(!high_.empty(), now);
  normal_.standing.set_occupied(!normal_.empty(), now);
  gate_.set_waiting(!high_.empty(), !normal_.empty());
  const auto waiting = static_cast<std::uint32_t>(size());
  waiting_.store(waiting, std::memory_order_relaxed);
  if (waiting == 0) emptied_.store(true, std::memory_order_relaxed);
}

// The waiter that a newcomer may displace from a full room; nullptr: none. `same_flow`: how many
// waiters the newcomer's own flow has.
Waiter* WaitingRoom::displaced_by(Priority priority, std::uint32_t same_flow) const noexcept {
  Waiter* longest = normal_.newest_of_longest();
  std::uint32_t length = longest != nullptr ? normal_.size(longest->flow_) : 0;
  if (priority == Priority::kHigh && !high_.empty()) {
    Waiter* high = high_.newest_of_longest();
    if (high_.size(high->flow_) > length) longest = high;
    length = std::max(length, high_.size(high->flow_));
  }
  return length >= same_flow + 2 ? longest : nullptr;
}

// Under the lock.
WaitingRoom::Reception WaitingRoom::receive(const Newcomer& newcomer, Duration line_patience,
                                            TimePoint now) const noexcept {
  if (newcomer.tier <= Duration(0)) return {};
  const WaitingLine& line = line_of(newcomer.priority);
  Reception out{.flow = line.flow_for(newcomer.actor)};
  // While the capacity is unknown, and while nothing runs that could free a unit, let it wait.
  const bool estimates = newcomer.capacity_per_second > 0 && gate_.sheddable() > 0;
  const auto too_long = [&](Duration patience) {
    if (!estimates) return false;
    const std::size_t before = newcomer.priority == Priority::kHigh ? 0 : high_.size();
    return hopeless(before + line.ahead_of(out.flow), newcomer.capacity_per_second, patience);
  };
  if (size() == newcomer.waiting_max) {
    out.displaced = displaced_by(newcomer.priority, line.size(out.flow));
  }
  out.by_line =
      (size() >= newcomer.waiting_max && out.displaced == nullptr) || too_long(line_patience);
  if (out.by_line) return out;
  Duration patience = line_patience;
  if (newcomer.deadline != TimePoint{}) patience = std::min(patience, newcomer.deadline - now);
  if (patience > Duration(0) && !too_long(patience)) out.patience = patience;
  return out;
}

Duration WaitingRoom::would_let_wait(const Newcomer& newcomer, TimePoint now) const noexcept {
  const std::scoped_lock lock(mutex_);
  policy::StandingLine standing = line_of(newcomer.priority).standing;  // a copy: a trial may begin
  return receive(newcomer, standing.patience(newcomer.tier, now), now).patience;
}

Waiter::State WaitingRoom::enter(Waiter& waiter, const Newcomer& newcomer, TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  WaitingLine& line = line_of(newcomer.priority);
  const Reception reception = receive(newcomer, line.standing.patience(newcomer.tier, now), now);
  if (reception.patience <= Duration(0)) {
    if (reception.by_line) line.standing.note_refused(now, now);
    waiter.reason_ = Reason::kOverload;
    waiter.state_.store(Waiter::State::kRefused, std::memory_order_relaxed);
    return Waiter::State::kRefused;
  }
  if (reception.displaced != nullptr) refuse(*reception.displaced, Reason::kOverload, now);
  waiter.set_expiry(now + reception.patience);
  waiter.entering_ = true;
  waiter.state_.store(Waiter::State::kWaiting, std::memory_order_release);
  line.push(waiter, reception.flow, newcomer.actor);
  publish(now);
  pump_locked(now);
  waiter.entering_ = false;
  return waiter.state_.load(std::memory_order_relaxed);
}

bool WaitingRoom::leave(Waiter& waiter, Permit& holdings, TimePoint expired_at) noexcept {
  const std::scoped_lock lock(mutex_);
  if (waiter.state_.load(std::memory_order_relaxed) != Waiter::State::kWaiting) return false;
  WaitingLine& line = line_of(waiter.priority_);
  if (expired_at != TimePoint{} && reason_of(waiter.deadline_, expired_at) == Reason::kOverload) {
    line.standing.note_refused(waiter.entered_at_, expired_at);
  }
  line.remove(waiter, false);
  holdings = std::move(waiter.permit_);
  waiter.state_.store(Waiter::State::kCancelled, std::memory_order_release);
  publish(expired_at);
  pump_locked(TimePoint{});  // a waiter behind it may fit where it did not
  return true;
}

void WaitingRoom::settle(Waiter& waiter, TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  const Waiter::State state = waiter.state_.load(std::memory_order_relaxed);
  WEIR_ASSERT(state == Waiter::State::kGranted || state == Waiter::State::kRefused);
  if (state != Waiter::State::kGranted) return;
  WaitHistogram& histogram = waited_[index_of(waiter.priority_)];
  const Duration waited = std::max(now - waiter.entered_at_, Duration(0));
  std::size_t bucket = 0;
  while (bucket < kWaitBucketsMs.size() &&
         waited > std::chrono::milliseconds(kWaitBucketsMs[bucket])) {
    ++bucket;
  }
  ++histogram.buckets[bucket];
  ++histogram.count;
  histogram.sum += waited;
}

void WaitingRoom::pump(TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  pump_locked(now);
}

void WaitingRoom::pump_locked(TimePoint now) noexcept {
  const std::size_t before = size();
  if (before == 0) return;
  while (serve(high_, now)) {
  }
  // High keeps precedence even if its first waiter costs too much to fit and a normal one fits.
  while (high_.empty() && serve(normal_, now)) {
  }
  if (size() != before) publish(now);
}

// Decides the first waiter of the line; false if the line is empty or that waiter does not fit.
bool WaitingRoom::serve(WaitingLine& line, TimePoint now) noexcept {
  Waiter* waiter = line.first();
  if (waiter == nullptr) return false;
  if (now != TimePoint{} && (time_is_over(*waiter, now) || too_late_for(line, *waiter, now))) {
    refuse(*waiter, reason_of(waiter->deadline_, now), now);
    return true;
  }
  const ClassGate::Attempt attempt = gate_.try_take(
      {waiter->priority_, false, process_.cost_at_most(waiter->cost_)}, waiter->modes_, true);
  if (attempt.take == Take::kLimit) return false;
  if (attempt.take != Take::kTaken) {
    const Reason reason = attempt.take == Take::kClassCap ? Reason::kClassLimit : Reason::kOverload;
    refuse(*waiter, reason, now);
    return true;
  }
  const std::uint16_t units = attempt.seat.units;
  if (process_.shared) {
    bool over = false;
    if (!process_.take(units, waiter->modes_, over)) {
      static_cast<void>(gate_.give_back(attempt.seat, waiter->priority_));
      refuse(*waiter, Reason::kOverload, now);
      return true;
    }
    waiter->global_units_ = units;
  }
  waiter->units_ = units;
  if (attempt.would == Take::kClassCap) waiter->would_refuse_ = Reason::kClassLimit;
  decide(*waiter, Waiter::State::kGranted, Reason::kAdmitted);
  return true;
}

/// Checks the waiter at the first event after a stall, which is either the timer that should have
/// ended the wait or a response that frees a unit.
bool WaitingRoom::time_is_over(Waiter& waiter, TimePoint now) noexcept {
  const TimePoint over_at = waiter.expires_at();
  if (over_at > now) return false;
  const Duration stall(process_.stall_ns.load(std::memory_order_relaxed));
  if (stall == Duration(0) || now - over_at <= stall) return true;
  const Duration patience = over_at - waiter.entered_at_;
  TimePoint end = std::min(now + patience, waiter.entered_at_ + kForgivenMax);
  if (waiter.deadline_ != TimePoint{}) end = std::min(end, waiter.deadline_);
  if (end <= now) return true;
  waiter.set_expiry(end);
  waiter.forgiven_ = true;
  emptied_.store(true, std::memory_order_relaxed);
  return false;
}

// A waiter with the patience of a moving line is at the front of a standing one. Whoever waits
// again after a stall of the process keeps that time.
bool WaitingRoom::too_late_for(WaitingLine& line, const Waiter& waiter, TimePoint now) noexcept {
  return !waiter.forgiven_ && now - waiter.entered_at_ > line.standing.served_within(now);
}

void WaitingRoom::expire_line(WaitingLine& line, TimePoint now) noexcept {
  line.for_each([&](Waiter& waiter) {
    if (time_is_over(waiter, now)) refuse(waiter, reason_of(waiter.deadline_, now), now);
  });
}

void WaitingRoom::expire(TimePoint now) noexcept {
  if (waiting() == 0) return;
  const std::scoped_lock lock(mutex_);
  expire_line(high_, now);
  expire_line(normal_, now);
  publish(now);
  pump_locked(now);
}

TimePoint WaitingRoom::next_expiry() const noexcept {
  TimePoint first = TimePoint::max();
  if (waiting() == 0) return first;
  const std::scoped_lock lock(mutex_);
  for (const WaitingLine* line : {&high_, &normal_}) {
    line->for_each([&](const Waiter& waiter) { first = std::min(first, waiter.expires_at()); });
  }
  return first;
}

bool WaitingRoom::standing(Priority priority, TimePoint now) const noexcept {
  if (priority != Priority::kHigh && priority != Priority::kNormal) return false;
  const std::scoped_lock lock(mutex_);
  policy::StandingLine line = line_of(priority).standing;
  return line.standing(now);
}

WaitHistogram WaitingRoom::waited(Priority priority) const noexcept {
  const std::scoped_lock lock(mutex_);
  return waited_[index_of(priority)];
}

}  // namespace weir::inline v0::inline control
