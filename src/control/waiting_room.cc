#include "waiting_room.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::inline control {

namespace {

bool hopeless(std::size_t ahead, double capacity_per_second, Duration patience) noexcept {
  if (capacity_per_second <= 0) return false;  // unknown: let it wait
  const double wait_s = static_cast<double>(ahead + 1) / capacity_per_second;
  return wait_s > to_seconds(patience);
}

}  // namespace

// Ends the wait of a waiter, under the lock. The state is stored before the callback, and settle()
// and leave() take the lock, so the owner cannot free the waiter while the callback runs.
void WaitingRoom::decide(Line& line, Waiter& waiter, Waiter::State state, Reason reason) noexcept {
  line.remove(waiter);
  waiter.reason_ = reason;
  waiter.state_.store(state, std::memory_order_release);
  if (!waiter.entering_ && waiter.on_ready_ != nullptr) waiter.on_ready_(waiter);
}

void WaitingRoom::publish() noexcept {
  gate_.set_waiting(!high_.empty(), !normal_.empty());
  waiting_.store(static_cast<std::uint32_t>(high_.size() + normal_.size()),
                 std::memory_order_relaxed);
  if (waiting() == 0) emptied_.store(true, std::memory_order_relaxed);
}

// Under the lock.
bool WaitingRoom::may_wait(const Newcomer& newcomer) const noexcept {
  const std::size_t ahead =
      high_.size() + (newcomer.priority == Priority::kHigh ? 0 : normal_.size());
  const bool full = high_.size() + normal_.size() >= newcomer.waiting_max;
  const bool too_long =
      gate_.sheddable() > 0 && hopeless(ahead, newcomer.capacity_per_second, newcomer.patience);
  return !full && !too_long && newcomer.patience > Duration(0);
}

bool WaitingRoom::would_let_wait(const Newcomer& newcomer) const noexcept {
  const std::scoped_lock lock(mutex_);
  return may_wait(newcomer);
}

Waiter::State WaitingRoom::enter(Waiter& waiter, std::uint32_t waiting_max,
                                 double capacity_per_second, TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!may_wait({.priority = waiter.priority_,
                 .patience = waiter.expires_at() - now,
                 .waiting_max = waiting_max,
                 .capacity_per_second = capacity_per_second})) {
    waiter.reason_ = Reason::kOverload;
    waiter.state_.store(Waiter::State::kRefused, std::memory_order_relaxed);
    return Waiter::State::kRefused;
  }
  waiter.entering_ = true;
  waiter.state_.store(Waiter::State::kWaiting, std::memory_order_release);
  line_of(waiter.priority_).push_back(waiter);
  publish();
  pump_locked(now);
  waiter.entering_ = false;
  return waiter.state_.load(std::memory_order_relaxed);
}

bool WaitingRoom::leave(Waiter& waiter, Permit& holdings) noexcept {
  const std::scoped_lock lock(mutex_);
  if (waiter.state_.load(std::memory_order_relaxed) != Waiter::State::kWaiting) return false;
  line_of(waiter.priority_).remove(waiter);
  holdings = std::move(waiter.permit_);
  waiter.state_.store(Waiter::State::kCancelled, std::memory_order_release);
  publish();
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
  const std::size_t before = high_.size() + normal_.size();
  if (before == 0) return;
  while (serve(high_, now)) {
  }
  // High keeps precedence even if its first waiter costs too much to fit and a normal one fits.
  while (high_.empty() && serve(normal_, now)) {
  }
  if (high_.size() + normal_.size() != before) publish();
}

// Decides the first waiter of the line; false if the line is empty or that waiter does not fit.
bool WaitingRoom::serve(Line& line, TimePoint now) noexcept {
  Waiter* waiter = line.front();
  if (waiter == nullptr) return false;
  if (now != TimePoint{} && time_is_over(*waiter, now)) {
    const bool deadline = waiter->deadline_ != TimePoint{} && waiter->deadline_ <= now;
    decide(line, *waiter, Waiter::State::kRefused,
           deadline ? Reason::kDeadline : Reason::kOverload);
    return true;
  }
  const ClassGate::Attempt attempt =
      gate_.try_take({waiter->priority_, false, process_.cost_at_most(waiter->cost_)}, true);
  if (attempt.take == Take::kLimit) return false;
  if (attempt.take != Take::kTaken) {
    const Reason reason = attempt.take == Take::kClassCap ? Reason::kClassLimit : Reason::kOverload;
    decide(line, *waiter, Waiter::State::kRefused, reason);
    return true;
  }
  const std::uint16_t units = attempt.seat.units;
  if (process_.shared) {
    bool over = false;
    if (!process_.take(units, over)) {
      static_cast<void>(gate_.give_back(attempt.seat, waiter->priority_));
      decide(line, *waiter, Waiter::State::kRefused, Reason::kOverload);
      return true;
    }
    waiter->global_units_ = units;
  }
  waiter->units_ = units;
  decide(line, *waiter, Waiter::State::kGranted, Reason::kAdmitted);
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
  emptied_.store(true, std::memory_order_relaxed);
  return false;
}

void WaitingRoom::expire_line(Line& line, TimePoint now) noexcept {
  for (Waiter* waiter = line.front(); waiter != nullptr;) {
    Waiter* next = line.next(*waiter);
    if (time_is_over(*waiter, now)) {
      const bool deadline = waiter->deadline_ != TimePoint{} && waiter->deadline_ <= now;
      decide(line, *waiter, Waiter::State::kRefused,
             deadline ? Reason::kDeadline : Reason::kOverload);
    }
    waiter = next;
  }
}

void WaitingRoom::expire(TimePoint now) noexcept {
  if (waiting() == 0) return;
  const std::scoped_lock lock(mutex_);
  expire_line(high_, now);
  expire_line(normal_, now);
  publish();
  pump_locked(now);
}

TimePoint WaitingRoom::next_expiry() const noexcept {
  TimePoint first = TimePoint::max();
  if (waiting() == 0) return first;
  const std::scoped_lock lock(mutex_);
  for (const Line* line : {&high_, &normal_}) {
    for (const Waiter& waiter : *line) first = std::min(first, waiter.expires_at());
  }
  return first;
}

WaitHistogram WaitingRoom::waited(Priority priority) const noexcept {
  const std::scoped_lock lock(mutex_);
  return waited_[index_of(priority)];
}

}  // namespace weir::inline v0::inline control
