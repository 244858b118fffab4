#include "policy/endpoint_health.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

constexpr TimePoint kNever{};

bool passed(TimePoint until, TimePoint now) noexcept {
  return until != kNever && now >= until;
}

Duration doubled(Duration first, std::uint32_t times) noexcept {
  return first * (std::int64_t{1} << times);
}

}  // namespace

EndpointHealth EndpointHealth::joined(TimePoint now, const EndpointHealthRules& rules) noexcept {
  EndpointHealth health(now);
  health.state_ = EndpointState::kReturning;
  health.ramp_began_ = now;
  health.ramp_ends_ = now + rules.ramp_max;
  return health;
}

std::optional<HealthChange> EndpointHealth::apply(HealthEvent event, TimePoint now,
                                                  const EndpointHealthRules& rules,
                                                  Rng& rng) noexcept {
  const HealthReason by_time = lapse(now, rules);
  // What ended by time ended before the event; both are one change if both matter.
  const std::optional<HealthChange> earlier = settle(by_time, now, rules);
  const HealthReason by_event = note(event, now, rules, rng);
  std::optional<HealthChange> change = settle(by_event, now, rules);
  if (!change) return earlier;
  if (earlier) change->from = earlier->from;
  return change;
}

/// Ends what time ends. The ramp does not run during a trial.
HealthReason EndpointHealth::lapse(TimePoint now, const EndpointHealthRules& rules) noexcept {
  HealthReason reason = reason_;
  if (trial_ == Trial::kNone && passed(ramp_ends_, now)) {
    ramp_began_ = ramp_ends_ = kNever;
    reason = HealthReason::kRampOver;
  }
  if (passed(trial_until_, now)) trial_until_ = kNever;
  if (passed(failed_until_, now)) {
    end_failure(now);
    reason = HealthReason::kPauseOver;
  } else if (failures_ > 0 && failed_until_ == kNever &&
             now - failed_ended_ >= rules.bad_answers_forgotten_after) {
    failures_ = 0;
  }
  if (passed(slow_until_, now)) {
    slow_ended_ = slow_until_;
    slow_until_ = kNever;
    reason = HealthReason::kPauseOver;
  }
  if (silence_ == Silence::kHung && passed(hung_until_, now)) {
    silence_ = Silence::kNone;
    if (trial_ == Trial::kNone) trial_ = Trial::kUntilAnswered;
    reason = HealthReason::kPauseOver;
  }
  if (passed(endpoint_drain_until_, now)) {
    endpoint_drain_until_ = kNever;
    reason = HealthReason::kDrainOver;
  }
  return reason;
}

/// The pause of a passive ejection is over: one attempt shows whether the endpoint is good again.
void EndpointHealth::end_failure(TimePoint now) noexcept {
  failed_until_ = kNever;
  failed_ended_ = now;
  const bool connects = failure_cause_ == HealthReason::kConnectFailed;
  trial_ = connects ? Trial::kUntilConnected : Trial::kUntilAnswered;
}

/// Returns the reason of the state that follows, if that is an open one.
HealthReason EndpointHealth::note(HealthEvent event, TimePoint now,
                                  const EndpointHealthRules& rules, Rng& rng) noexcept {
  switch (event) {
    case HealthEvent::kConnected:
      // A connect that was tried during the pause got through: the pause has lost its reason.
      if (failure_cause_ == HealthReason::kConnectFailed) failed_until_ = kNever;
      if (trial_ == Trial::kUntilConnected) end_trial(now);
      return HealthReason::kHeard;
    case HealthEvent::kConnectFailed:
      eject_for_failure(HealthReason::kConnectFailed, now, rules);
      return reason_;
    case HealthEvent::kAnswered:
      note_answered(now);
      return HealthReason::kAnswered;
    case HealthEvent::kBadAnswer:
      note_bad_answer(now, rules);
      return reason_;
    case HealthEvent::kHeard:
      silence_ = Silence::kNone;
      return HealthReason::kHeard;
    case HealthEvent::kSuspected:
      if (silence_ == Silence::kNone) silence_ = Silence::kSuspect;
      return reason_;
    case HealthEvent::kHung:
      hang(now, rules);
      return reason_;
    case HealthEvent::kTooSlow:
      if (!away()) eject_for_latency(now, rules, rng);
      return reason_;
    case HealthEvent::kCheckPassed:
    case HealthEvent::kCheckFailed:
      return note_check(event == HealthEvent::kCheckPassed, rules);
    case HealthEvent::kWanted:
      return note_wanted(now, rules);
    case HealthEvent::kTrialStarted:
      if (trial_ != Trial::kNone) trial_until_ = now + rules.trial_max;
      return reason_;
    case HealthEvent::kOperatorDrain:
    case HealthEvent::kOperatorUndrain:
    case HealthEvent::kEndpointDrain:
    case HealthEvent::kEndpointUndrain:
      return note_drain(event, now, rules);
    case HealthEvent::kTick:
      break;
  }
  return reason_;
}

HealthReason EndpointHealth::note_drain(HealthEvent event, TimePoint now,
                                        const EndpointHealthRules& rules) noexcept {
  if (event == HealthEvent::kOperatorDrain) operator_drain_ = true;
  if (event == HealthEvent::kOperatorUndrain) operator_drain_ = false;
  if (event == HealthEvent::kEndpointDrain) endpoint_drain_until_ = now + rules.endpoint_drain;
  if (event == HealthEvent::kEndpointUndrain) endpoint_drain_until_ = kNever;
  return HealthReason::kDrainOver;
}

HealthReason EndpointHealth::note_check(bool passed, const EndpointHealthRules& rules) noexcept {
  if (passed) silence_ = Silence::kNone;
  if (passed != checks_down_) {
    check_streak_ = 0;
    return HealthReason::kHeard;
  }
  const std::uint32_t needed = checks_down_ ? rules.checks_rise : rules.checks_fall;
  if (++check_streak_ < needed) return HealthReason::kHeard;
  check_streak_ = 0;
  checks_down_ = !checks_down_;
  return HealthReason::kChecksPassed;
}

void EndpointHealth::note_bad_answer(TimePoint now, const EndpointHealthRules& rules) noexcept {
  // Not reset by the ejection: until an answer is good, one more bad one is enough.
  bad_answers_ = std::min(bad_answers_ + 1, rules.bad_answers_max);
  if (bad_answers_ >= rules.bad_answers_max) {
    eject_for_failure(HealthReason::kBadAnswers, now, rules);
  }
}

void EndpointHealth::note_answered(TimePoint now) noexcept {
  silence_ = Silence::kNone;
  // An endpoint that is ejected for bad answers has sent this one to an earlier request.
  const bool for_answers = failure_cause_ == HealthReason::kBadAnswers;
  if (for_answers && failed_until_ != kNever) return;
  bad_answers_ = hangs_ = 0;
  if (!for_answers) failures_ = 0;
  failed_until_ = kNever;
  end_trial(now);
}

/// Nobody else can be used: the endpoint is tried again soon, however long its pause is.
HealthReason EndpointHealth::note_wanted(TimePoint now, const EndpointHealthRules& rules) noexcept {
  const bool connects = failure_cause_ == HealthReason::kConnectFailed;
  if (!connects || failed_until_ == kNever || now - failed_since_ < rules.pause_first) {
    return reason_;
  }
  end_failure(now);
  return HealthReason::kPauseOver;
}

void EndpointHealth::eject_for_failure(HealthReason cause, TimePoint now,
                                       const EndpointHealthRules& rules) noexcept {
  const bool ejected = failed_until_ != kNever;
  // What cannot be connected to is of no use in a panic either.
  if (!ejected || cause == HealthReason::kConnectFailed) failure_cause_ = cause;
  if (ejected) return;
  failed_until_ = now + doubled(rules.pause_first, std::min(failures_, rules.pause_doublings_max));
  ++failures_;
  failed_since_ = now;
  trial_ = Trial::kNone;
  trial_until_ = kNever;
}

void EndpointHealth::eject_for_latency(TimePoint now, const EndpointHealthRules& rules,
                                       Rng& rng) noexcept {
  if (slow_ended_ != kNever && now - slow_ended_ >= rules.slow_forgotten_after) slow_count_ = 0;
  Duration pause = rules.slow_pause_first;
  for (std::uint32_t k = 0; k < slow_count_ && pause < rules.slow_pause_max; ++k) pause *= 2;
  pause = std::min(pause, rules.slow_pause_max);
  const double stretch = 1 + rules.slow_pause_jitter * (2 * rng.unit() - 1);
  const auto ns = static_cast<std::int64_t>(static_cast<double>(pause.count()) * stretch);
  slow_until_ = now + Duration(ns);
  if (pause < rules.slow_pause_max) ++slow_count_;
}

void EndpointHealth::hang(TimePoint now, const EndpointHealthRules& rules) noexcept {
  if (silence_ != Silence::kHung) ++hangs_;
  silence_ = Silence::kHung;
  const std::uint32_t doublings = std::min(hangs_ - 1, rules.hung_doublings_max);
  hung_until_ = now + doubled(rules.hung_pause_first, doublings);
  trial_ = Trial::kNone;
  trial_until_ = kNever;
}

/// The endpoint is proven: the ramp begins now.
void EndpointHealth::end_trial(TimePoint now) noexcept {
  if (trial_ == Trial::kNone) return;
  trial_ = Trial::kNone;
  trial_until_ = kNever;
  const Duration ramp = ramp_ends_ - ramp_began_;
  if (ramp <= Duration::zero()) return;
  ramp_began_ = now;
  ramp_ends_ = now + ramp;
}

bool EndpointHealth::away() const noexcept {
  return operator_drain_ || endpoint_drain_until_ != kNever || checks_down_ ||
         silence_ == Silence::kHung || failed_until_ != kNever || slow_until_ != kNever;
}

EndpointHealth::Verdict EndpointHealth::worst(HealthReason latest) const noexcept {
  using enum EndpointState;
  if (operator_drain_) return {kDraining, HealthReason::kOperator};
  if (endpoint_drain_until_ != kNever) return {kDraining, HealthReason::kEndpoint};
  if (checks_down_) return {kEjected, HealthReason::kChecksFailed};
  if (silence_ == Silence::kHung) return {kHung, HealthReason::kSilent};
  if (failed_until_ != kNever) return {kEjected, failure_cause_};
  if (slow_until_ != kNever) return {kEjected, HealthReason::kSlow};
  if (silence_ == Silence::kSuspect) return {kSuspect, HealthReason::kSilent};
  if (trial_ != Trial::kNone || ramp_ends_ != kNever) return {kReturning, latest};
  return {kAvailable, latest};
}

/// Derives the state from the conditions, and begins or drops the ramp.
std::optional<HealthChange> EndpointHealth::settle(HealthReason latest, TimePoint now,
                                                   const EndpointHealthRules& rules) noexcept {
  const bool is_away = away();
  if (is_away && !was_away_) {
    away_since_ = now;
    ramp_began_ = ramp_ends_ = kNever;
  } else if (!is_away && was_away_) {
    const Duration ramp = std::min(now - away_since_, rules.ramp_max);
    if (ramp > Duration::zero()) {
      ramp_began_ = now;
      ramp_ends_ = now + ramp;
    }
  }
  was_away_ = is_away;
  const Verdict verdict = worst(latest);
  const bool same_state = verdict.state == state_;
  if (same_state && (!is_away || verdict.reason == reason_)) return std::nullopt;
  const HealthChange change{
      .from = state_, .to = verdict.state, .reason = verdict.reason, .at = now};
  if (!same_state) since_ = now;
  state_ = verdict.state;
  reason_ = verdict.reason;
  return change;
}

std::optional<TimePoint> EndpointHealth::until() const noexcept {
  TimePoint end{};
  switch (state_) {
    case EndpointState::kDraining:
      end = operator_drain_ ? kNever : endpoint_drain_until_;
      break;
    case EndpointState::kHung:
      end = hung_until_;
      break;
    case EndpointState::kEjected:
      if (!checks_down_) end = failed_until_ != kNever ? failed_until_ : slow_until_;
      break;
    case EndpointState::kReturning:
      if (trial_ == Trial::kNone) end = ramp_ends_;
      break;
    case EndpointState::kAvailable:
    case EndpointState::kSuspect:
      break;
  }
  if (end == kNever) return std::nullopt;
  return end;
}

Openness EndpointHealth::openness() const noexcept {
  if (operator_drain_ || endpoint_drain_until_ != kNever) return Openness::kClosed;
  const bool failed = failed_until_ != kNever;
  if (failed && failure_cause_ == HealthReason::kConnectFailed) return Openness::kClosed;
  if (silence_ != Silence::kNone) return Openness::kLastResort;
  if (failed || checks_down_ || slow_until_ != kNever) return Openness::kPanicOnly;
  if (trial_ == Trial::kNone) return Openness::kOpen;
  if (trial_until_ == kNever) return Openness::kTrial;
  return trial_ == Trial::kUntilConnected ? Openness::kClosed : Openness::kTrialBusy;
}

double EndpointHealth::return_ratio(TimePoint now,
                                    const EndpointHealthRules& rules) const noexcept {
  if (trial_ != Trial::kNone) return rules.ramp_start;
  if (ramp_ends_ == kNever || now >= ramp_ends_) return 1;
  const double done = static_cast<double>((now - ramp_began_).count()) /
                      static_cast<double>((ramp_ends_ - ramp_began_).count());
  return std::clamp(done, rules.ramp_start, 1.0);
}

bool EndpointHealth::quiet() const noexcept {
  const bool connects_failed = failures_ > 0 && failure_cause_ == HealthReason::kConnectFailed;
  return bad_answers_ == 0 && !connects_failed && hangs_ == 0 && silence_ == Silence::kNone &&
         trial_ == Trial::kNone;
}

}  // namespace weir::inline v0::inline policy
