#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// Detects a hung endpoint by its silence, not by the age of a request: a slow request on an
/// endpoint that sends bytes to others is no reason to suspect it.
///
///   silence   = now - max(last byte heard, send time of the oldest unanswered attempt)
///   threshold = clamp(3 × cohort p99, 100 ms, 2 s)
///   suspect   : silence > threshold, and another endpoint was heard after the silence began, and
///   our
///               own loop was not late (else the delay may be ours)
///   hung      : suspect, and a probe is unanswered for 500 ms or silence > 3 thresholds
struct SilenceRules {
  double p99_factor = 3;
  Duration threshold_min = std::chrono::milliseconds(100);
  Duration threshold_max = std::chrono::seconds(2);
  Duration probe_timeout = std::chrono::milliseconds(500);
  std::int64_t hung_thresholds = 3;
};

/// What is known of one endpoint, over all loops and connections. A zero time point: never.
struct SilenceFacts {
  TimePoint last_heard{};         // last byte on any connection: response, PING ack, SETTINGS
  TimePoint oldest_unanswered{};  // written completely, no response head yet; zero: no such attempt
  TimePoint others_heard{};       // last byte of any other endpoint of the upstream
  TimePoint probe_sent{};         // the outstanding PING or check; zero: none
  Duration
      cohort_p99{};  // of the operation class of that attempt, over all endpoints; zero: unknown
  bool loop_late = false;  // the loop that reads it was late during the silence
};

enum class SilenceVerdict : std::uint8_t { kHeard, kSuspect, kHung };

[[nodiscard]] constexpr Duration silence_threshold(Duration cohort_p99,
                                                   const SilenceRules& rules) noexcept {
  const double wanted = static_cast<double>(cohort_p99.count()) * rules.p99_factor;
  const auto low = static_cast<double>(rules.threshold_min.count());
  const auto high = static_cast<double>(rules.threshold_max.count());
  return Duration(static_cast<std::int64_t>(std::clamp(wanted, low, high)));
}

/// Zero while no attempt is unanswered.
[[nodiscard]] constexpr Duration silence_of(const SilenceFacts& facts, TimePoint now) noexcept {
  if (facts.oldest_unanswered == TimePoint{}) return Duration::zero();
  return std::max(now - std::max(facts.last_heard, facts.oldest_unanswered), Duration::zero());
}

/// Promises: total and pure; kHeard while no attempt is unanswered, while nobody else was heard, or
/// with a late loop; never less severe when `now` grows and nothing else changes.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr SilenceVerdict judge_silence(const SilenceFacts& facts,
                                                     const SilenceRules& rules,
                                                     TimePoint now) noexcept {
  const Duration silence = silence_of(facts, now);
  const Duration threshold = silence_threshold(facts.cohort_p99, rules);
  if (silence <= threshold || facts.loop_late) return SilenceVerdict::kHeard;
  if (facts.others_heard <= now - silence) return SilenceVerdict::kHeard;
  if (silence > rules.hung_thresholds * threshold) return SilenceVerdict::kHung;
  const bool unanswered =
      facts.probe_sent != TimePoint{} && now - facts.probe_sent > rules.probe_timeout;
  return unanswered ? SilenceVerdict::kHung : SilenceVerdict::kSuspect;
}

/// Whether an attempt that was cancelled by its client after `waited`, without a response, counts
/// as a bad answer of the endpoint: the client has waited longer than a working endpoint takes.
/// Otherwise an endpoint whose clients all give up would never fail. Not while it is suspect or
/// hung.
[[nodiscard]] constexpr bool missing_answer(Duration waited, Duration cohort_p99,
                                            const SilenceRules& rules) noexcept {
  return cohort_p99 > Duration::zero() && waited > silence_threshold(cohort_p99, rules);
}

/// What ended a suspicion: a byte of a response, or the answer to a probe.
enum class SilenceEnd : std::uint8_t { kResponse, kProbe };

/// Whether the attempts that were caught in a silence say nothing about the endpoint's latency.
/// They do not after a hang, or if responses flow again. If only a probe was answered, the endpoint
/// is alive and its requests are slow: that must be learned.
[[nodiscard]] constexpr bool silence_drops_samples(SilenceVerdict worst, SilenceEnd end) noexcept {
  return worst == SilenceVerdict::kHung || end == SilenceEnd::kResponse;
}

/// Whether the latency of an attempt that was sent at `sent` is caught in a silence and must not
/// teach the score: else a stop of 5 s would cost the endpoint its traffic for a minute.
/// `suspected_until`: when the last suspicion ended for which silence_drops_samples() holds; `now`
/// while one lasts; zero: never.
[[nodiscard]] constexpr bool caught_in_silence(TimePoint sent, TimePoint suspected_until) noexcept {
  return suspected_until != TimePoint{} && sent <= suspected_until;
}

}  // namespace weir::inline v0::inline policy
