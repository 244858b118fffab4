#pragma once

#include <optional>

#include "weir/base/rng.h"
#include "weir/policy/limit_config.h"

#include "latency_shape.h"

namespace weir::inline v0::inline policy {

/// The default limiter: finds how much a service can hold, without knowing anything about it.
///
/// A queue adds the same wait to every request. So the wait is the median of what three percentiles
/// grew by over a baseline (the same percentiles without a queue). With N requests in flight, X
/// answers per second, and W the wait in the average latency A:
///
///   queue   Q = N × W / A          requests queued inside the service
///   busy    K = N − Q              requests that it works on
///   slack   β = 1 + √K + K / 10    an acceptable queue, which keeps the workers busy
///   whole   X × A ≈ N              Little's law: the answers seen are those of what is in flight
///   slope   Δ ln X / Δ ln N        1: no queue, the service can use what it is given; 0: saturated
///
///   Q > β             shrink towards K + ¾ β, by at most 30 % per window (50 % if Q > K);
///                     below 2 β only after two such windows in a row
///   Q < β / 2, used   grow by 1/16 of the limit, and twice that share after each such window with
///                     an almost empty queue, up to doubling
///   otherwise         hold
///
/// Every change of the limit is a test: the slope between before and after tells whether latency
/// above the baseline is a queue. A slope of 1, twice, makes the present latency the baseline:
///   · a probe lowers the limit in steps, every 30 to 60 s while it is full
///   · the first test of a service goes up if its latencies differ, down if they are close together
///     (a long queue makes them equal)
///   · shrinking and growing are compared with the state before them in the same way
///   · if most clients leave unanswered, X counts those that stay: the limit is halved, and
///     restored if the answers fall in proportion
/// With several gateways before one service the slope of each is near 1 at any queue: the others
/// take what it gives up. If they exchange what they measure (exchange()), all probe at common
/// instants, only such a probe makes a baseline, which counts for all, and β is 1 + its part of
/// √(n K) + n K / 10, where n gateways are full. Between β / 2 and β limits approach their mean.
/// Baselines come from whole windows only. If a full limit is not whole (long polls, slow uploads),
/// its places are held by others than the answered, and it grows.
///
/// Promises: those of LimitPolicy. It never stays at its floor: after two windows it tests a higher
/// limit, and again after 4, 8, … 64. An unused limit does not grow and is at most max(initial, 4 ×
/// the peak in flight of the last minutes). Only queueing and `overload` outcomes shrink it. The
/// reason is kAtCeiling while max_limit, not a queue, limits.
class AutoLimit final : public LimitPolicy {
 public:
  AutoLimit(const LimitConfig& config, Rng rng) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;
  [[nodiscard]] std::uint32_t limit() const noexcept override { return limit_; }
  [[nodiscard]] WindowRules window_rules() const noexcept override;
  void set_bounds(const LimitBounds& bounds) noexcept override;
  [[nodiscard]] BaselineReport exchange(const BaselineNews& news) noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override {
    return name_of(LimitKind::kAuto);
  }

 private:
  /// One window in the terms used above.
  struct View {
    LatencyShape shape{};
    double in_flight = 0;   // N
    double throughput = 0;  // answers per second
    double queue = 0;       // Q
    double busy = 0;        // K
    bool used = false;      // the limit was reached
    bool whole = true;      // its answers are not only the fast ones of what was in flight
    bool leaving = false;   // most clients did
    bool left = false;      // many clients left before the end
    bool full = false;      // requests were refused or had to wait because of it
  };
  /// The state at which a descent began; its effect is measured against this.
  struct Mark {
    std::uint32_t limit = 0;
    double in_flight = 0;
    double throughput = 0;
    LatencyShape shape{};
  };
  /// The effect of a change of the limit.
  enum class Effect : std::uint8_t { kSaturated, kNoQueue, kUnclear };
  /// Whether the slope showed at the end of a probe that there is no queue.
  enum class Proof : std::uint8_t { kNone, kMeasured };

  [[nodiscard]] View view_of(const LimitSample& window) const noexcept;
  [[nodiscard]] LimitReason watch(const View& view, const LimitSample& window) noexcept;
  [[nodiscard]] LimitReason on_overload(const LimitSample& window) noexcept;
  [[nodiscard]] LimitReason on_abandoned(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason shrink(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason grow(const View& view, TimePoint now) noexcept;
  void climb(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason begin_probe(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason probe_step(const View& view, TimePoint now) noexcept;
  [[nodiscard]] LimitReason end_probe(const View& view, TimePoint now, Proof proof) noexcept;
  [[nodiscard]] LimitReason rise(const View& view, TimePoint now) noexcept;
  [[nodiscard]] static Effect effect_of(const View& view, const Mark& mark, double doubt) noexcept;
  [[nodiscard]] double blind_step() const noexcept;
  void step_to(double wanted, TimePoint now) noexcept;
  void settle(TimePoint now) noexcept;
  void note_latency(const LimitSample& window) noexcept;
  void learn_quietly(const View& view) noexcept;
  void adopt(const View& view, TimePoint now) noexcept;
  void schedule_probe(TimePoint now) noexcept;
  [[nodiscard]] bool hold_to_peak(const LimitSample& window) noexcept;
  [[nodiscard]] bool recover(const LimitSample& window) noexcept;
  [[nodiscard]] std::uint32_t clamped(double wanted) const noexcept;
  [[nodiscard]] Mark mark_of(const View& view) const noexcept;
  // ---- auto_limit_shared.cc
  [[nodiscard]] bool shares() const noexcept { return closed_at_ < shares_until_; }
  [[nodiscard]] bool common_probe_due(TimePoint now) const noexcept;
  [[nodiscard]] bool common_probe_near(TimePoint now) const noexcept;
  [[nodiscard]] Duration until_common_probe() const noexcept;
  [[nodiscard]] double slack(double busy) const noexcept;
  void approach_mean() noexcept;
  void want_probe(TimePoint now) noexcept;
  void publish(const View& view, TimePoint now) noexcept;

  Duration window_;
  LimitBounds bounds_;
  Rng rng_;
  std::uint32_t limit_;

  bool probing_ = false;
  bool starting_ = true;
  bool known_ = false;     // a baseline exists
  bool verified_ = false;  // a probe measured or confirmed it
  bool retake_ = false;    // not verified, and a stall followed: replace it by the next window
  LatencyShape baseline_{};
  double baseline_in_flight_ = 0;  // the concurrency at which it was taken
  bool descending_ = false;        // queueing shrinks the limit; mark_ is the state before
  bool doubted_ = false;           // the last window alone was not enough to decide
  bool slower_ = false;            // the last window showed that shrinking does not help
  bool rising_ = false;            // the step under test goes up from the floor
  Mark mark_{};
  Mark climb_{};          // before the limit grew
  bool climbed_ = false;  // the last window showed that what was added is answered as fast
  double cliff_ = 0;      // no growth above this until cliff_until_: clients left there
  TimePoint cliff_until_{};
  std::uint32_t quiet_limit_ = 0;  // of the last window in which most stayed; 0: none since a step
  std::uint32_t probe_from_ = 0;   // the limit before the probe
  double probe_best_ = 0;          // the highest throughput during the probe
  std::uint32_t probe_steps_ = 0;
  double growth_ = 1;  // the next step up, as a share of the limit
  std::uint32_t floor_windows_ = 0;
  std::uint32_t floor_patience_;    // windows at the floor before the next test upwards
  std::uint32_t full_windows_ = 0;  // in a row
  std::uint32_t held_windows_ = 0;  // in a row: full, mostly of requests that are not answered
  TimePoint patient_until_{};       // clients that leave are no sign of a queue until then
  TimePoint settled_at_{};          // windows opened earlier contain answers from before a step
  TimePoint closed_at_{};
  TimePoint samples_from_{};
  TimePoint next_probe_{};
  Duration confirm_after_{};  // doubling pause between confirmations; zero: none due
  double peak_ = 0;           // in flight, decaying
  Duration latency_{};        // of the last window: the round trip
  Duration first_latency_{};  // of the first window: stands for the baseline until one is known
  Duration slow_{};           // the same of its slow requests (p90)
  bool even_ = false;         // latencies are close together: little noise, no long tail
  std::uint32_t thin_ = 0;    // how often windows were lengthened

  // With other gateways before the same service:
  TimePoint shares_until_{};                // what was heard counts until then
  std::optional<ServiceBaseline> heard_{};  // the shared baseline in use
  TimePoint common_probe_{};                // the next; zero: it has begun here
  bool common_ = false;                     // the last probe began with those of the others
  std::uint32_t full_gateways_ = 0;
  double limit_mean_ = 0;  // of those
  TimePoint wants_probe_until_{};
  bool full_ = false;     // in the last window
  double in_flight_ = 0;  // the same
  std::optional<ServiceBaseline> measured_{};
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_auto_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
