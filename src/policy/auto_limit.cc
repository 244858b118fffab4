#include "auto_limit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "auto_limit_terms.h"
#include "limit_range.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kGrowMin = 1.0 / 16;       // growth after a queue, as a share of the limit;
constexpr double kGrowMax = 1.0;            // it doubles with each window that shows no queue
constexpr std::uint32_t kHeldWindows = 2;   // in a row, until places count as held
constexpr double kOverloadDeadZone = 0.03;  // a smaller share of overload answers is noise
constexpr double kOverloadStepMin = 0.05;
constexpr double kOutage = 0.9;        // above this share of overload answers: an outage
constexpr double kSureQueue = 2;       // a queue above this × slack needs no second window
constexpr double kAbandoned = 0.75;    // above this share of abandoned requests, and
constexpr double kProportional = 0.6;  // answers that fall by this part of what places fell by
constexpr double kPeakFactor = 4;
constexpr double kPeakFade = 240;          // time constant of the decay of the peak, in seconds
constexpr double kRecoverDoubling = 0.5;   // seconds; an unused limit below its start doubles
constexpr double kCalmLatency = 2;         // … unless the latency is this × the baseline
constexpr std::uint32_t kSamplesMin = 24;  // a window with fewer does not change the limit
constexpr std::uint32_t kFullWindows = 3;  // in a row, before a probe
constexpr std::uint32_t kFullWindowsFew = 6;
constexpr double kLeft = 0.1;          // a larger share of abandoned requests hides latencies
constexpr double kBunched = 1.5;       // p90 below this × p50: a long queue, or equal requests
constexpr double kSteady = 0.8;        // the same, for the first test of a service
constexpr double kBlindMin = 8;        // no lower without a measurement
constexpr double kBelowCliff = 0.8;    // of the limit before the growth that made clients leave
constexpr double kClimb = 1.4;         // growth over which answers are compared
constexpr double kDoubtClimb = 0.25;   // less than of a test: growth also gets answers at the cost
                                       // of another gateway before the same service
constexpr double kWhole = 0.9;         // the same, to learn from a window whose limit is full
constexpr double kAccounted = 0.6;     // share of what is in flight that the answers account for
constexpr double kCrowd = 0.1;         // refused or waiting requests per answer
constexpr std::uint32_t kThinMax = 5;  // windows grow to at most 2^5 times their length
constexpr Duration kWindowMin = milliseconds(10);
constexpr Duration kWindowMax = seconds(30);

double seconds_of(const LimitSample& window) noexcept {
  return std::max(1e-6, to_seconds(window.closed_at - window.opened_at));
}

// Whether the answered requests are most of what was in flight (by Little's law).
bool accounts_for_flight(const LimitSample& window, double share) noexcept {
  const double answered = window.sample_count * to_seconds(window.latency_avg);
  return answered >= share * window.in_flight_max * seconds_of(window);
}

}  // namespace

AutoLimit::AutoLimit(const LimitConfig& config, Rng rng) noexcept
    : window_(config.window_duration),
      bounds_(config.bounds()),
      rng_(rng),
      limit_(in_bounds(config.initial_limit, bounds_)),
      floor_patience_(kFloorPatienceMin) {}

LimitDecision AutoLimit::on_window(const LimitSample& window) noexcept {
  if (next_probe_ == TimePoint{}) schedule_probe(window.closed_at);
  closed_at_ = window.closed_at;
  LimitReason reason = LimitReason::kNoSamples;
  View view;
  const std::uint64_t outcomes = std::uint64_t{window.sample_count} + window.overload_count;
  const bool overloaded =
      outcomes > 0 && window.overload_count > kOverloadDeadZone * static_cast<double>(outcomes);
  if (window.sample_count > 0) note_latency(window);
  if (overloaded) {
    reason = on_overload(window);
  } else if (window.opened_at < settled_at_) {
    reason = probing_ ? LimitReason::kProbe : LimitReason::kHold;
  } else if (window.sample_count < kSamplesMin) {
    thin_ = std::min(thin_ + 1, kThinMax);
  } else {
    thin_ = 0;
    view = view_of(window);
    full_ = view.full;
    in_flight_ = view.in_flight;
    const bool abandoned = window.abandoned_count > kAbandoned * window.sample_count;
    reason = abandoned ? on_abandoned(view, window.closed_at) : watch(view, window);
  }
  const bool calm = reason == LimitReason::kNotUsed || reason == LimitReason::kNoSamples;
  if (calm && recover(window)) reason = LimitReason::kStarting;
  if (hold_to_peak(window)) reason = LimitReason::kPeakBound;
  const double known_ns = known_ ? baseline_.avg : static_cast<double>(first_latency_.count());
  return {.limit = limit_,
          .reason = reason,
          .queue_estimate = view.queue,
          .baseline = Duration(static_cast<std::int64_t>(known_ns)),
          .samples_from = samples_from_};
}

// The very first answers are the fast ones: nothing is decided before the slow ones have arrived.
void AutoLimit::note_latency(const LimitSample& window) noexcept {
  const bool first = latency_.count() == 0;
  // Until a step has settled, only requests that were granted and answered since are seen: the fast
  // ones.
  if (probing_ && window.opened_at < settled_at_ && window.latency_avg < latency_) return;
  latency_ = std::max(window.latency_avg, Duration(1));
  if (first) first_latency_ = latency_;
  slow_ = std::max(latency_, window.latency_p90);
  even_ = window.latency_p10 * 10 > window.latency_p50 * 6 &&
          window.latency_avg * 10 < window.latency_p50 * 13;
  if (first && !accounts_for_flight(window, kAccounted)) settle(window.closed_at);
}

AutoLimit::View AutoLimit::view_of(const LimitSample& window) const noexcept {
  View view;
  view.shape = LatencyShape::of(window);
  view.throughput = (window.sample_count - window.abandoned_count) / seconds_of(window);
  view.full = window.refused_count > 0;
  view.leaving = window.abandoned_count * 2 > window.sample_count;
  view.left = window.abandoned_count > kLeft * window.sample_count;
  view.whole = !view.full || accounts_for_flight(window, kWhole);
  view.used = view.full || std::uint64_t{window.in_flight_max} * 8 >= std::uint64_t{limit_} * 7;
  // By Little's law; if the limit is full, the peak is exact.
  const double average = window.sample_count / seconds_of(window) * view.shape.avg * 1e-9;
  const auto peak = static_cast<double>(window.in_flight_max);
  view.in_flight = view.full ? peak : std::min(peak, average);
  view.busy = view.in_flight;
  if (known_ && view.shape.avg > 0) {
    const double wait = added_wait(view.shape, baseline_);
    view.queue = view.in_flight * std::min(1.0, wait / view.shape.avg);
    view.busy = view.in_flight - view.queue;
  }
  return view;
}

LimitReason AutoLimit::watch(const View& view, const LimitSample& window) noexcept {
  const TimePoint now = window.closed_at;
  if (probing_) return probe_step(view, now);
  if (!view.leaving) quiet_limit_ = limit_;
  if (!known_ || retake_) {
    known_ = true;
    retake_ = false;
    baseline_ = view.shape;
    baseline_in_flight_ = view.in_flight;
  }
  full_windows_ = view.full ? full_windows_ + 1 : 0;
  if (common_probe_due(now) && view.full) return begin_probe(view, now);
  if (common_probe_near(now)) return LimitReason::kHold;
  held_windows_ = view.full && !accounts_for_flight(window, kAccounted) ? held_windows_ + 1 : 0;
  if (held_windows_ >= kHeldWindows && view.queue < slack(view.busy)) return grow(view, now);
  if (view.full && !verified_ && !descending_) {
    // Probe if more requests were refused than answered and the answers account for what is in
    // flight (otherwise slow clients may hold it), or if many are refused, or if a few are refused
    // for long. A short peak that reaches the limit does not count.
    const bool most =
        window.refused_count > window.sample_count && accounts_for_flight(window, kAccounted);
    const bool crowd = window.refused_count > kCrowd * window.sample_count;
    const std::uint32_t enough = most ? 1 : crowd ? 2 : kFullWindowsFew;
    if (full_windows_ < enough) return LimitReason::kHold;
    want_probe(now);  // what this one measures alone counts until then, and here only
    const bool bunched = view.shape.p90 < kBunched * view.shape.p50;
    if (bunched || limit_ >= bounds_.max || view.queue > view.busy) return begin_probe(view, now);
    return accounts_for_flight(window, kSteady) ? rise(view, now) : LimitReason::kHold;
  }
  const double bearable = slack(view.busy);
  if (view.queue > bearable) {
    // One window slightly above, or above without filling the limit, is often noise.
    const bool doubtful = !descending_ && (view.queue < kSureQueue * bearable || !view.used);
    if (doubtful && !doubted_) {
      doubted_ = true;
      return LimitReason::kHold;
    }
    doubted_ = false;
    return shrink(view, now);
  }
  descending_ = doubted_ = false;
  climb(view, now);
  // A probe affects all requests, so occasional refusals do not justify one: the limit must be
  // full for several windows.
  if (!shares() && full_windows_ >= kFullWindows && now >= next_probe_) {
    return begin_probe(view, now);
  }
  learn_quietly(view);
  if (view.queue >= bearable / 2) {
    starting_ = false;
    growth_ = 0;
    if (view.full) approach_mean();
    return LimitReason::kHold;
  }
  return view.used ? grow(view, now) : LimitReason::kNotUsed;
}

// The new limit is what was in flight and was answered well: refusals return quickly, so their
// number says little about their share of the limit. If nothing was answered, the capacity after
// the outage is unknown.
LimitReason AutoLimit::on_overload(const LimitSample& window) noexcept {
  const double all = static_cast<double>(window.sample_count) + window.overload_count;
  const double share = window.overload_count / all;
  const bool outage = share > kOutage;
  probing_ = rising_ = starting_ = doubted_ = false;
  growth_ = kGrowMin * 2;
  if (limit_ <= lowest(bounds_)) return LimitReason::kAtFloor;
  const double served = window.sample_count / seconds_of(window) * to_seconds(window.latency_avg);
  const double least = blind_step();
  const double most = limit_ * (1 - std::max(kOverloadStepMin, share / 4));
  step_to(outage ? least : std::max(least, std::min(served, most)), window.closed_at);
  return LimitReason::kOverload;
}

// The cause is a stall, or a queue longer than clients wait. The effect of a lower limit is not
// visible, so a probe ends. Clients that leave early, or a limit that is not full, are no overload.
LimitReason AutoLimit::on_abandoned(const View& view, TimePoint now) noexcept {
  probing_ = rising_ = doubted_ = slower_ = false;
  full_windows_ = 0;
  retake_ = !verified_;
  if (!view.used || now < patient_until_) {
    descending_ = false;
    return LimitReason::kHold;
  }
  if (descending_ && view.in_flight <= 0.8 * mark_.in_flight) {
    const double answers = mark_.throughput > 0 ? view.throughput / mark_.throughput : 1;
    const double places = view.in_flight / mark_.in_flight;
    if (1 - answers > kProportional * (1 - places)) {
      // Fewer places, fewer answers: there is no queue, the clients just do not wait long enough.
      descending_ = false;
      patient_until_ = now + rng_.between(kProbeMin, kProbeMax);
      step_to(mark_.limit, now);
      return LimitReason::kProbeEnded;
    }
  }
  starting_ = false;
  growth_ = 0;
  if (limit_ <= lowest(bounds_)) return LimitReason::kAtFloor;
  if (limit_ > quiet_limit_ && quiet_limit_ > 0) {
    // It began with the last growth: return to below what was good, and stay there for a while.
    cliff_ = quiet_limit_ * kBelowCliff;
    cliff_until_ = now + rng_.between(kProbeMin, kProbeMax);
    step_to(cliff_, now);
    return LimitReason::kQueueing;
  }
  descending_ = true;
  mark_ = mark_of(view);
  step_to(blind_step(), now);
  return LimitReason::kQueueing;
}

// Half, but not below what can still be measured: nothing is known of the capacity.
double AutoLimit::blind_step() const noexcept {
  return std::max(limit_ * kStepDownDeep, std::min<double>(limit_, kBlindMin));
}

LimitReason AutoLimit::shrink(const View& view, TimePoint now) noexcept {
  starting_ = false;
  if (descending_ && view.in_flight <= 0.8 * mark_.in_flight) {
    const Effect effect = effect_of(view, mark_, kDoubt);
    if (effect == Effect::kNoQueue) {
      // Needs two windows: by chance one window in a hundred shows this, and a wrong result would
      // raise the limit.
      if (!std::exchange(slower_, true)) return LimitReason::kHold;
      slower_ = false;
      if (!shares()) {
        const std::uint32_t before = mark_.limit;
        adopt(view, now);
        step_to(before, now);
        return LimitReason::kProbeEnded;
      }
      want_probe(now);  // or the others took what was given up
    }
    if (shares() && now < wants_probe_until_) return LimitReason::kHold;
    slower_ = false;
    mark_ = mark_of(view);
  }
  if (!descending_) {
    slower_ = false;
    descending_ = true;
    mark_ = mark_of(view);
  }
  if (limit_ <= lowest(bounds_)) {
    if (++floor_windows_ >= floor_patience_ && view.full) return rise(view, now);
    return LimitReason::kAtFloor;
  }
  growth_ = 0;
  const double holds = view.busy + slack(view.busy) * 0.75;
  const bool mostly_queue = view.queue > view.busy;
  step_to(std::max(holds, limit_ * (mostly_queue ? kStepDownDeep : kStepDown)), now);
  return LimitReason::kQueueing;
}

// While the limit grows, more in flight that is answered in proportion, and as fast, shows that the
// latency is no queue even if it is above the baseline: the service has become slower.
void AutoLimit::climb(const View& view, TimePoint now) noexcept {
  if (!view.full || climb_.in_flight <= 0 || view.in_flight < climb_.in_flight) {
    climb_ = mark_of(view);
    climbed_ = false;
    return;
  }
  if (view.in_flight < kClimb * climb_.in_flight) return;
  if (effect_of(view, climb_, kDoubtClimb) != Effect::kNoQueue) {
    climb_ = mark_of(view);
    climbed_ = false;
    return;
  }
  if (!std::exchange(climbed_, true)) return;
  climbed_ = false;
  climb_ = mark_of(view);
  if (!verified_ || slowdown(view.shape, baseline_) <= 1 + kConfirmed) return;
  shares() ? want_probe(now) : adopt(view, now);
}

LimitReason AutoLimit::grow(const View& view, TimePoint now) noexcept {
  if (limit_ >= bounds_.max) return LimitReason::kAtCeiling;
  if (now < cliff_until_ && limit_ >= cliff_) return LimitReason::kHold;
  if (view.left || view.queue > slack(view.busy) / 4) growth_ = 0;
  growth_ = std::clamp(growth_ * 2, kGrowMin, kGrowMax);
  limit_ = clamped(limit_ + std::max(1.0, limit_ * growth_));
  if (limit_ >= bounds_.max) return LimitReason::kAtCeiling;  // the bound limits, not a queue
  return starting_ ? LimitReason::kStarting : LimitReason::kGrow;
}

// ---- bounds

bool AutoLimit::hold_to_peak(const LimitSample& window) noexcept {
  peak_ -= peak_ * std::min(1.0, seconds_of(window) / kPeakFade);
  peak_ = std::max(peak_, static_cast<double>(window.in_flight_max));
  const double bound = std::max(static_cast<double>(bounds_.initial), peak_ * kPeakFactor);
  if (limit_ <= bound) return false;
  limit_ = clamped(bound);
  return true;
}

// A limit that fell in a rush, and that nobody needs now, says nothing about the next rush: it
// returns to where a new one starts, so that it is the same some seconds after an attack or an
// outage as before it. A limit that is in use is not touched: it grows by itself.
bool AutoLimit::recover(const LimitSample& window) noexcept {
  const bool unused =
      window.refused_count == 0 && std::uint64_t{window.in_flight_max} * 2 <= limit_;
  const bool slow =
      known_ && static_cast<double>(window.latency_avg.count()) > kCalmLatency * baseline_.avg;
  if (limit_ >= bounds_.initial || !unused || slow || probing_) return false;
  const double factor = std::exp2(std::min(seconds_of(window) / kRecoverDoubling, 10.0));
  limit_ = std::min(bounds_.initial, clamped(limit_ * factor + 1));
  return true;
}

void AutoLimit::step_to(double wanted, TimePoint now) noexcept {
  limit_ = clamped(wanted);
  quiet_limit_ = 0;
  settle(now);
}

// Windows that contain answers from before a step do not change the limit.
void AutoLimit::settle(TimePoint now) noexcept {
  settled_at_ = now + std::min(even_      ? latency_ * 3 / 2
                               : probing_ ? slow_ * 2
                                          : latency_ * 3,
                               kWindowMax);
}

std::uint32_t AutoLimit::clamped(double wanted) const noexcept {
  const double whole = std::clamp(wanted, 1.0, 1e9);
  return in_bounds(static_cast<std::uint32_t>(whole), bounds_);
}

AutoLimit::Mark AutoLimit::mark_of(const View& view) const noexcept {
  return {limit_, view.in_flight, view.throughput, view.shape};
}

WindowRules AutoLimit::window_rules() const noexcept {
  const Duration trips = std::clamp(latency_ * 2, kWindowMin, kWindowMax);
  const Duration longest =
      std::min({kWindowMax, std::max(window_, trips) * (1 << thin_), until_common_probe()});
  if (closed_at_ < settled_at_) {
    const Duration rest = std::max(settled_at_ - closed_at_, Duration(milliseconds(1)));
    return {.duration = rest, .duration_min = rest, .early_close_samples = 0};
  }
  const std::uint32_t wanted = even_ ? 64 : probing_ ? 256 : 128;
  const Duration shortest = even_ ? std::max(kWindowMin, latency_) : trips;
  return {.duration = longest,
          .duration_min = std::min(shortest, longest),
          .early_close_samples = even_ && probing_ ? wanted : std::max(wanted, limit_ * 2)};
}

void AutoLimit::set_bounds(const LimitBounds& bounds) noexcept {
  bounds_ = bounds;
  limit_ = in_bounds(limit_, bounds_);
}

std::unique_ptr<LimitPolicy> make_auto_limit(const LimitConfig& config, Rng rng) {
  return std::make_unique<AutoLimit>(config, rng);
}

}  // namespace weir::inline v0::inline policy
