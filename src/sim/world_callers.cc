#include <algorithm>
#include <optional>
#include <utility>

#include "world.h"

// The callers: loads that make calls, timeouts, retries, and the end of every call.

namespace weir::inline v0::sim {
// Without delays, an answer arrives at the instant of its request; a retry must still come later.
constexpr Duration kRetryMin = std::chrono::microseconds(1);
constexpr Duration kRetransmitMax = std::chrono::seconds(120);  // as Linux

void World::schedule_arrival(std::uint32_t index) {
  Load& load = loads_[index];
  const LoadSpec& spec = *load.spec;
  Duration at{};
  if (spec.arrivals == ArrivalKind::kTrace) {
    if (load.trace_at >= spec.trace.size()) return;
    at = spec.starts + spec.trace[load.trace_at].at;
  } else {
    const bool poisson = spec.arrivals == ArrivalKind::kPoisson;
    const auto next = load.profile.advance(poisson ? draw_unit_exponential(load.rng) : 1.0);
    if (!next) return;
    at = *next;
  }
  if (at >= spec.stops || TimePoint(at) >= stop_) return;
  schedule(TimePoint(at), Kind::kArrival, index);
}

void World::arrive(std::uint32_t index) {
  Load& load = loads_[index];
  const LoadSpec& spec = *load.spec;
  if (spec.arrivals == ArrivalKind::kBursts) {
    const TimePoint next = now_ + spec.burst_every;
    if (next < stop_ && next.time_since_epoch() < spec.stops) {
      schedule(next, Kind::kArrival, index);
    }
    for (std::uint32_t i = 0; i < spec.burst_size; ++i) {
      const Duration later = spec.burst_spread * i / spec.burst_size;
      if (later.count() == 0) {
        start_call(index, nullptr);
      } else {
        schedule(now_ + later, Kind::kArrival, index, 1);
      }
    }
    return;
  }
  const TraceRow* row = nullptr;
  if (spec.arrivals == ArrivalKind::kTrace) row = &spec.trace[load.trace_at++];
  schedule_arrival(index);
  start_call(index, row);
}

void World::start_call(std::uint32_t index, const TraceRow* row) {
  Load& load = loads_[index];
  const LoadSpec& spec = *load.spec;
  if (now_ >= stop_ || now_.time_since_epoch() >= spec.stops) return;  // the load has ended
  Attempt& attempt = attempts_.take();
  attempt.priority = row != nullptr ? row->priority : spec.priority;
  attempt.caller = load.caller;
  attempt.service = spec.to;
  if (spec.spread > 1) {
    const Service& behind = services_[services_[spec.to].spec->calls.front().to];
    attempt.service += static_cast<std::uint32_t>(load.rng.below(behind.open_gateways));
  }
  attempt.load = index;
  attempt.cohort = load.cohorts[index_of(attempt.priority)];
  attempt.called_at = now_;
  attempt.width = static_cast<std::uint16_t>(spec.width);
  attempt.cost = row != nullptr ? row->cost : spec.cost;
  attempt.bytes = row != nullptr ? row->bytes : spec.bytes;
  const std::uint32_t turn = load.turn++;
  if (row != nullptr) {
    if (row->actor > 0) attempt.actor = row->actor - 1;
    if (row->peer > 0) attempt.peer = row->peer - 1;
    attempt.hedge = row->hedge;
  } else if (spec.actors > 0) {
    attempt.actor = turn % spec.actors;
  }
  if (row == nullptr && spec.peers > 0) attempt.peer = turn % spec.peers;
  ++balance_.started;
  ++recorder_.calls(attempt.cohort).offered;
  if (spec.sender) return put_message(attempt);
  send(attempt);
}

// `place`: where a race keeps the attempt.
void World::start_inner_call(Attempt& parent, std::uint32_t* place) {
  const Service& service = services_[parent.service];
  Attempt& child = attempts_.take();
  child.priority = parent.priority;
  child.caller = service.first_caller + parent.call_at;
  child.service = service.spec->calls[parent.call_at].to;
  child.parent = parent.index;
  child.called_at = now_;
  (place != nullptr ? *place : parent.child) = child.index;
  if (service.spec->is_gateway) {
    child.load = parent.load;
    child.width = parent.width;
  }
  send(child);
}

void World::send(Attempt& attempt) {
  Caller& caller = callers_[attempt.caller];
  const CallerSpec& spec = *caller.spec;
  ++attempt.number;
  ++attempt.life;
  ++balance_.attempts;
  attempt.state = AttemptState::kToService;
  attempt.lost = false;
  attempt.call_at = 0;
  attempt.fails = attempt.turned_away = attempt.absent = false;
  if (attempt.cohort != kNoAttempt) ++recorder_.calls(attempt.cohort).attempts;
  if (spec.timeout.count() > 0) {
    add_timeout(caller.lane, attempt, spec.timeout, Kind::kTimeouts, attempt.caller);
    if (spec.sends_deadline) attempt.deadline = now_ + spec.timeout;
  }
  const std::optional<Duration> time = link_time(caller);
  if (!time) {
    attempt.lost = true;
    ++attempt.token;
    return;
  }
  if (time->count() == 0 && !stalls_) return reach(attempt);
  schedule(attempt, *time, Kind::kReach);
}

// How long one message is on the way; nullopt: it is lost for ever.
std::optional<Duration> World::link_time(Caller& caller) {
  const LinkSpec& link = caller.spec->link;
  Duration waited{};
  if (link.loss > 0) {
    Duration wait = link.retransmit;
    while (caller.rng.chance(link.loss)) {
      if (wait.count() == 0) return std::nullopt;
      waited += wait;
      wait = std::min(2 * wait, kRetransmitMax);
    }
  }
  return link.delay.is_zero() ? waited : waited + link.delay.draw(caller.rng);
}

void World::answered(Attempt& attempt) {
  ++attempt.life;  // ends its timeout
  ++attempt.token;
  if (attempt.end == CallEnd::kOk) return end_call(attempt, CallEnd::kOk);
  attempt_failed(attempt, attempt.end);
}

Duration World::retry_wait(Attempt& attempt) {
  Caller& caller = callers_[attempt.caller];
  const RetrySpec& retry = caller.spec->retry;
  if (retry.kind == RetryKind::kImmediate) return kRetryMin;
  if (retry.kind == RetryKind::kHint && attempt.hint.count() > 0) return attempt.hint;
  double wait = static_cast<double>(retry.base.count());
  for (int i = 1; i < attempt.number && wait < 1e15; ++i) wait *= 2;
  wait = std::min(wait, static_cast<double>(retry.wait_max.count()));
  wait *= 1 + retry.jitter * (2 * caller.rng.unit() - 1);
  return std::max(kRetryMin, Duration(static_cast<std::int64_t>(wait)));
}

void World::attempt_failed(Attempt& attempt, CallEnd end) {
  const RetrySpec& retry = callers_[attempt.caller].spec->retry;
  if (retry.kind == RetryKind::kNone || attempt.number >= retry.attempts_max) {
    return end_call(attempt, end);
  }
  ++attempt.life;
  attempt.state = AttemptState::kBackingOff;
  schedule(attempt, retry_wait(attempt), Kind::kRetry);
}

void World::end_call(Attempt& attempt, CallEnd end) {
  const std::uint32_t parent = attempt.parent;
  const std::uint32_t load = attempt.load;
  if (attempt.cohort != kNoAttempt) {
    CallTotals& totals = recorder_.calls(attempt.cohort);
    ++totals.ended[static_cast<std::size_t>(end)];
    if (end == CallEnd::kOk) totals.latency.add(now_ - attempt.called_at);
    if (end == CallEnd::kOk && attempt.absent) ++totals.absent;
    ++balance_.ended[static_cast<std::size_t>(end)];
  }
  const bool turned_away = attempt.turned_away;
  const bool error_answer = attempt.fails;
  const bool absent = attempt.absent;
  const std::uint32_t index = attempt.index;
  if (attempt.message != kNoAttempt) message_ended(attempt, end);
  attempts_.give_back(attempt);
  if (parent != kNoAttempt) {
    attempts_[parent].child = kNoAttempt;
    attempts_[parent].replica.turned_away = turned_away;
    attempts_[parent].replica.error_answer = error_answer;
    attempts_[parent].replica.absent = absent;
    return inner_call_ended(attempts_[parent], index, end);
  }
  if (load != kNoAttempt && loads_[load].spec->arrivals == ArrivalKind::kClosed) {
    Load& from = loads_[load];
    const Duration pause = std::max(kRetryMin, from.spec->think.draw(from.rng));
    if (now_ + pause < stop_) schedule(now_ + pause, Kind::kThought, load);
  }
}

// The caller's timeout has expired.
void World::give_up(Attempt& attempt) {
  const bool cancels = callers_[attempt.caller].spec->cancels;
  const bool on_link = attempt.state == AttemptState::kToCaller ||
                       (attempt.state == AttemptState::kToService && (cancels || attempt.lost));
  if (on_link) {
    ++attempt.token;
    return attempt_failed(attempt, CallEnd::kTimedOut);
  }
  if (!cancels || survives(attempt)) {
    Attempt& heir = detach_caller(attempt);
    if (cancels) finish_permit(services_[attempt.service], attempt, Outcome::kIgnored);
    attempt_failed(heir, CallEnd::kTimedOut);
    return collect_ready();
  }
  abandon(attempt);
  attempt_failed(attempt, CallEnd::kTimedOut);
  collect_ready();
}

void World::add_timeout(TimeoutLane& lane, const Attempt& attempt, Duration timeout, Kind kind,
                        std::uint32_t subject) {
  lane.push({now_ + timeout, attempt.index, attempt.life});
  if (!std::exchange(lane.scheduled, true)) schedule(lane.front().at, kind, subject);
}

void World::run_lane(TimeoutLane& lane, Kind kind, std::uint32_t subject) {
  lane.scheduled = false;
  while (!lane.empty()) {
    const TimeoutLane::Entry entry = lane.front();
    Attempt& attempt = attempts_[entry.attempt];
    if (attempt.life != entry.life) {
      lane.pop();
      continue;
    }
    if (entry.at > now_) {
      lane.scheduled = true;
      return schedule(entry.at, kind, subject);
    }
    lane.pop();
    kind == Kind::kTimeouts ? give_up(attempt) : service_late(attempt);
  }
}

}  // namespace weir::inline v0::sim
