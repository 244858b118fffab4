#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/enum_names.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// What an endpoint may be used for; a label of metrics, shown by /endpoints.
enum class EndpointState : std::uint8_t {
  kAvailable,
  kReturning,  // available again, with a weight that grows
  kSuspect,    // silent: no new attempts, it is being probed
  kHung,       // silent for long, or a probe is unanswered
  kEjected,    // by failures, by latency, or by active checks: reason() says which
  kDraining,   // by the operator or by the endpoint
};
WEIR_ENUM_NAMES(EndpointState, "available", "returning", "suspect", "hung", "ejected", "draining")

/// Why an endpoint changed its state.
enum class HealthReason : std::uint8_t {
  kNew,            // joined the set
  kConnectFailed,  // -> ejected
  kBadAnswers,     // -> ejected: bad answers or timeouts in a row
  kSlow,           // -> ejected: latency_ejection.h
  kChecksFailed,   // -> ejected
  kSilent,         // -> suspect, hung: silence.h
  kOperator,       // -> draining
  kEndpoint,       // -> draining: the endpoint said so
  kPauseOver,      // -> returning: the time of the ejection is over
  kAnswered,       // -> returning or available: an answer arrived
  kHeard,          // suspect -> available; hung -> returning: a byte arrived
  kChecksPassed,   // -> returning
  kDrainOver,      // draining -> returning
  kRampOver,       // returning -> available
};
WEIR_ENUM_NAMES(HealthReason, "new", "connect_failed", "bad_answers", "slow", "checks_failed",
                "silent", "operator", "endpoint", "pause_over", "answered", "heard",
                "checks_passed", "drain_over", "ramp_over")
inline constexpr std::size_t kHealthReasonCount = kHealthReasonNames.size();

/// What happened to an endpoint.
enum class HealthEvent : std::uint8_t {
  kConnected,      // a connect succeeded
  kConnectFailed,  // refused, unreachable, timed out, TLS failed
  kAnswered,       // a good answer
  kBadAnswer,      // 5xx that the gateway counts as bad, invalid HTTP, lost connection, timeout
  kHeard,          // any byte, a probe's answer included
  kSuspected,      // judge_silence() said kSuspect
  kHung,           // judge_silence() said kHung, or a probe failed or is unanswered
  kTooSlow,        // an outlier that may_eject_slow() lets be ejected
  kCheckPassed,    // active check
  kCheckFailed,    // active check: bad answer, failed connect or timeout
  kOperatorDrain,
  kOperatorUndrain,
  kEndpointDrain,    // GOAWAY with a drain, a configured health answer, connection: close
  kEndpointUndrain,  // the health answer is good again
  kWanted,           // a request waits, and no endpoint is open
  kTrialStarted,     // an attempt was sent to it while openness() was kTrial
  kTick,             // nothing but time; call it every 10 to 100 ms
};
inline constexpr std::size_t kHealthEventCount = 17;

struct EndpointHealthRules {
  std::uint32_t bad_answers_max = 3;                      // in a row
  Duration pause_first = std::chrono::milliseconds(100);  // passive ejection, doubled ...
  std::uint32_t pause_doublings_max = 6;                  // ... up to 6.4 s
  Duration bad_answers_forgotten_after = std::chrono::seconds(10);
  Duration slow_pause_first = std::chrono::seconds(3);  // latency ejection: × 2^k, ± jitter
  Duration slow_pause_max = std::chrono::seconds(60);   // before the jitter
  double slow_pause_jitter = 0.2;
  Duration slow_forgotten_after = std::chrono::seconds(60);  // k becomes 0
  Duration hung_pause_first = std::chrono::seconds(1);       // doubled ...
  std::uint32_t hung_doublings_max = 3;                      // ... up to 8 s
  std::uint32_t checks_rise = 2;                             // passed in a row: back
  std::uint32_t checks_fall = 3;                             // failed in a row: out
  Duration ramp_max = std::chrono::seconds(10);              // slow return
  double ramp_start = 0.1;
  Duration trial_max = std::chrono::seconds(1);        // then another attempt may try
  Duration endpoint_drain = std::chrono::seconds(10);  // forgotten unless repeated
};

struct HealthChange {
  EndpointState from = EndpointState::kAvailable;
  EndpointState to = EndpointState::kAvailable;
  HealthReason reason = HealthReason::kNew;
  TimePoint at{};
};

/// How a choice may treat an endpoint now, best first.
enum class Openness : std::uint8_t {
  kOpen,        // available, returning
  kTrial,       // returning and not proven yet: send it one attempt, and apply kTrialStarted
  kTrialBusy,   // the attempt is under way: use it only if no other is open
  kPanicOnly,   // ejected by bad answers, latency or checks: usable when too few are open
  kLastResort,  // suspect, hung: only if there is no other at all
  kClosed,      // draining, or its connects fail: not even then
};

/// The state machine of one endpoint.
///
/// Several conditions exist side by side, and the worst of them is the state: draining > ejected by
/// checks > hung > ejected by failures > ejected by latency > suspect > returning > available.
///
///   ejected, failures: from a failed connect, until 0.1 s × 2^n (at most 6.4 s) have passed, an
///                      answer arrives, or a request waits for an endpoint (kWanted) 0.1 s later;
///                      from bad_answers_max bad answers in a row, until the same time has passed
///   ejected, latency:  from kTooSlow, until 3 s × 2^k (at most 60 s) ± 20 % have passed
///   ejected, checks:   from checks_fall failed checks in a row, until checks_rise passed ones
///   suspect:           from kSuspected, until any byte arrives
///   hung:              from kHung, until any byte arrives, or 1 s × 2^n (at most 8 s) have passed
///                      since the last kHung
///   draining:          until the operator or the endpoint ends it; what the endpoint said is
///                      forgotten after endpoint_drain
///
/// - Failures during an ejection come from requests sent before it: they count once.
/// - n is forgotten with an answer if connects had failed, and after a hang. After bad answers it
/// is
///   forgotten when bad_answers_forgotten_after has passed since the ejection ended: an endpoint
///   that fails every second request also gives good answers, and must stay out longer each time.
/// - k is forgotten after slow_forgotten_after without a latency ejection.
/// - An endpoint that leaves {ejected, hung, draining} returns slowly: its weight grows from
///   ramp_start to 1, for as long as it was away, at most ramp_max. (After a short absence its
///   caches and connections are still warm.) A suspicion that ends has no ramp.
/// - An endpoint that returns from a failure or a hang because time has passed is on *trial* before
///   the ramp: one attempt at a time, until a connect succeeds (if connects failed) or an answer
///   arrives. The claim of an attempt that was abandoned expires after trial_max. If connects
///   failed, others do not use it during the trial even if there is no other endpoint, so that
///   requests which wait for the endpoint do not all fail on it.
/// - An endpoint that hangs without probes (HTTP/1.1 without checks) gets a trial after the pause;
///   a kHung for each unanswered probe extends the pause.
///
/// Promises: deterministic for equal events and draws. A change of the state, and a change of the
/// cause while it stays out (then from == to), is reported exactly once, by the call that made it.
/// No ejection or ramp lasts longer than the rules say, however events are ordered. Draws from
/// `rng` once for each latency ejection, otherwise never. Thread-safety: none. Loops share it under
/// a small lock; publish openness() and the ramp after a change, and skip the lock for kAnswered,
/// kConnected and kHeard while quiet() (publish that too). Cost: O(1), no allocation. Lifetime: a
/// value; an address that comes back to the set keeps its own.
class EndpointHealth {
 public:
  /// Available at once, without a ramp: for the first set after the start.
  explicit EndpointHealth(TimePoint now) noexcept : since_(now) {}
  /// Joined a set that is in use: returns slowly over ramp_max.
  [[nodiscard]] static EndpointHealth joined(TimePoint now,
                                             const EndpointHealthRules& rules) noexcept;

  /// nullopt: the state is the same as before.
  std::optional<HealthChange> apply(HealthEvent event, TimePoint now,
                                    const EndpointHealthRules& rules, Rng& rng) noexcept;

  [[nodiscard]] EndpointState state() const noexcept { return state_; }
  /// Why it is in this state, and since when.
  [[nodiscard]] HealthReason reason() const noexcept { return reason_; }
  [[nodiscard]] TimePoint since() const noexcept { return since_; }
  /// When the state ends by itself; nullopt: an event ends it.
  [[nodiscard]] std::optional<TimePoint> until() const noexcept;
  [[nodiscard]] Openness openness() const noexcept;

  /// The factor of its weight: from ramp_start to 1 during the ramp, otherwise 1.
  [[nodiscard]] double return_ratio(TimePoint now, const EndpointHealthRules& rules) const noexcept;
  [[nodiscard]] TimePoint ramp_began() const noexcept { return ramp_began_; }
  [[nodiscard]] TimePoint ramp_ends() const noexcept { return ramp_ends_; }

  /// kAnswered, kConnected and kHeard would change nothing now.
  [[nodiscard]] bool quiet() const noexcept;

 private:
  enum class Silence : std::uint8_t { kNone, kSuspect, kHung };
  enum class Trial : std::uint8_t { kNone, kUntilConnected, kUntilAnswered };

  struct Verdict {
    EndpointState state;
    HealthReason reason;
  };

  [[nodiscard]] HealthReason lapse(TimePoint now, const EndpointHealthRules& rules) noexcept;
  void end_failure(TimePoint now) noexcept;
  [[nodiscard]] HealthReason note(HealthEvent event, TimePoint now,
                                  const EndpointHealthRules& rules, Rng& rng) noexcept;
  [[nodiscard]] HealthReason note_drain(HealthEvent event, TimePoint now,
                                        const EndpointHealthRules& rules) noexcept;
  [[nodiscard]] HealthReason note_check(bool passed, const EndpointHealthRules& rules) noexcept;
  void note_bad_answer(TimePoint now, const EndpointHealthRules& rules) noexcept;
  void note_answered(TimePoint now) noexcept;
  [[nodiscard]] HealthReason note_wanted(TimePoint now, const EndpointHealthRules& rules) noexcept;
  void eject_for_failure(HealthReason cause, TimePoint now,
                         const EndpointHealthRules& rules) noexcept;
  void eject_for_latency(TimePoint now, const EndpointHealthRules& rules, Rng& rng) noexcept;
  void hang(TimePoint now, const EndpointHealthRules& rules) noexcept;
  void end_trial(TimePoint now) noexcept;
  [[nodiscard]] bool away() const noexcept;
  [[nodiscard]] Verdict worst(HealthReason latest) const noexcept;
  std::optional<HealthChange> settle(HealthReason latest, TimePoint now,
                                     const EndpointHealthRules& rules) noexcept;

  EndpointState state_ = EndpointState::kAvailable;
  HealthReason reason_ = HealthReason::kNew;
  HealthReason failure_cause_ = HealthReason::kConnectFailed;
  Silence silence_ = Silence::kNone;
  Trial trial_ = Trial::kNone;
  bool operator_drain_ = false;
  bool checks_down_ = false;
  bool was_away_ = false;
  std::uint32_t slow_count_ = 0;    // k
  std::uint32_t failures_ = 0;      // passive ejections that are not forgotten
  std::uint32_t hangs_ = 0;         // since the last answer
  std::uint32_t bad_answers_ = 0;   // in a row
  std::uint32_t check_streak_ = 0;  // results against checks_down_, in a row
  TimePoint since_{};               // of state_
  TimePoint away_since_{};
  // Zero: the condition does not hold.
  TimePoint failed_until_{};
  TimePoint failed_since_{};
  TimePoint slow_until_{};
  TimePoint hung_until_{};
  TimePoint endpoint_drain_until_{};
  TimePoint trial_until_{};  // an attempt is under way
  TimePoint ramp_began_{};
  TimePoint ramp_ends_{};
  TimePoint slow_ended_{};    // the last latency ejection; zero: there was none
  TimePoint failed_ended_{};  // the last ejection by failures
};

}  // namespace weir::inline v0::inline policy
