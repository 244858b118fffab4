#pragma once

#include "weir/base/rng.h"
#include "weir/policy/limit_config.h"

#include "latency_shape.h"

namespace weir::inline v0::policy {

/// The default: finds how much a service can hold, without being told anything about it.
///
/// What a queue does to latency is to add the same wait to everybody, so the wait is read off three
/// percentiles at once: what they grew by over a baseline (the same percentiles without a queue),
/// the median of the three. A few slow calls, or a new mix of fast and slow ones, move one of them;
/// a queue moves all. With N requests in flight, W of the average latency A being wait:
///
///   queue   Q = N × W / A          inside the service, in requests
///   busy    K = N − Q              what it really works on
///   slack   β = 2 √K + K / 10      a queue worth having: it keeps the workers fed
///
///   Q > β             shrink towards K + ¾ β, by 30 % at most per window; below 2 β only when two
///                     windows in a row say so
///   Q < β / 2, used   grow: doubling at the start, by half up to what was good before, then by 6
///                     to 25 %, the more the emptier the queue
///   otherwise         hold
///
/// The baseline is only taken from windows known to be without a queue:
///   · at the same concurrency as before, or less, it follows what it sees
///   · under load it is measured by lowering the limit in steps and watching both latency and
///     throughput. A saturated service answers as much as before and faster; so go on. One that
///     answers less, as slowly as before, has no queue: that is the baseline
///   · the same test is made whenever queueing shrinks the limit: if two windows in a row say that
///     shrinking does not help, the service has become slower, and what was taken away comes back
/// A probe comes every 30 to 60 s (jittered), at once when a start finds the limit full, and soon
/// after a baseline was raised, to confirm it.
///
/// Where most clients leave before they are answered, all that is known is how long they wait,
/// which is the same whatever the limit: nothing is learned from such a window, and a limit that
/// was full is halved.
///
/// Promises: those of LimitPolicy. It never stays at its floor: after two windows there comes a
/// test upwards, and again after 4, 8, … 64. An unused limit does not grow, and is held to
/// max(initial, 4 × the peak in flight of the last minutes). Only queueing and `overload` outcomes
/// shrink it.
class AutoLimit final : public LimitPolicy {
 public:
  AutoLimit(const LimitConfig& config, Rng rng) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;
  [[nodiscard]] std::uint32_t limit() const noexcept override { return limit_; }
  [[nodiscard]] WindowRules window_rules() const noexcept override;
  void set_bounds(const LimitBounds& bounds) noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override {
    return name_of(LimitKind::kAuto);
  }

 private:
  /// One window in the terms of the rules.
  struct View {
    LatencyShape shape{};
    double in_flight = 0;   // N
    double throughput = 0;  // answers per second
    double queue = 0;       // Q
    double busy = 0;        // K
    bool used = false;      // the limit was reached
    bool full = false;      // somebody was refused or made to wait by it
  };
  /// Where a descent began: what its effect is measured against.
  struct Mark {
    std::uint32_t limit = 0;
    double in_flight = 0;
    double throughput = 0;
    LatencyShape shape{};
  };
  /// What changing the limit did.
  enum class Effect : std::uint8_t { kSaturated, kNoQueue, kUnclear };

  [[nodiscard]] View view_of(const LimitSample& window) const noexcept;
  [[nodiscard]] LimitReason watch(const View& view, const LimitSample& window) noexcept;
  [[nodiscard]] LimitReason on_overload(const LimitSample& window) noexcept;
  [[nodiscard]] LimitReason on_abandoned(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason shrink(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason grow(double room) noexcept;
  [[nodiscard]] LimitReason begin_probe(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason probe_step(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason end_probe(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason rise_from_floor(const View& view, TimePoint now) noexcept;
  [[nodiscard]] Effect effect_of(const View& view) const noexcept;
  void step_to(double wanted, TimePoint now) noexcept;
  void settle(TimePoint now) noexcept;
  void note_latency(const LimitSample& window) noexcept;
  void learn_quietly(const View& view) noexcept;
  void adopt(const View& view, TimePoint now) noexcept;
  void schedule_probe(TimePoint now) noexcept;
  [[nodiscard]] bool hold_to_peak(const LimitSample& window) noexcept;
  [[nodiscard]] std::uint32_t clamped(double wanted) const noexcept;
  [[nodiscard]] Mark mark_of(const View& view) const noexcept;

  Duration window_;
  LimitBounds bounds_;
  Rng rng_;
  std::uint32_t limit_;

  bool probing_ = false;
  bool starting_ = true;
  bool known_ = false;     // there is a baseline
  bool verified_ = false;  // it was measured, or confirmed, by a probe
  bool retake_ = false;    // it was not, and a stall came between: the next window is better
  LatencyShape baseline_{};
  double baseline_in_flight_ = 0;  // the concurrency it was taken at
  bool descending_ = false;        // queueing shrinks the limit; mark_ is where that began
  bool doubted_ = false;           // the last window was a little above the bearable
  bool slower_ = false;            // the last window said that shrinking does not help
  bool rising_ = false;            // the step under test goes up from the floor
  Mark mark_{};
  std::uint32_t probe_from_ = 0;  // the limit before the probe
  double probe_best_ = 0;         // the highest throughput seen in it
  std::uint32_t probe_steps_ = 0;
  double good_ = 0;  // a limit that was fine before a shrink
  std::uint32_t floor_windows_ = 0;
  std::uint32_t floor_patience_;    // how many of those before the next test upwards
  std::uint32_t full_windows_ = 0;  // in a row
  TimePoint settled_at_{};          // windows opened before hold answers from before a step
  TimePoint closed_at_{};
  TimePoint samples_from_{};
  TimePoint next_probe_{};
  Duration confirm_after_{};  // doubling pause between confirmations; zero: none due
  double peak_ = 0;           // of in flight, fading
  Duration latency_{};        // of the last window: the round trip
  bool even_ = false;         // its latencies lie close together: little noise, no long tail
  std::uint32_t thin_ = 0;    // how often windows had to be lengthened
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_auto_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::policy
