// How AutoLimit measures: tests of a lower or a higher limit, and the baseline that follows.
#include <algorithm>
#include <cmath>
#include <utility>

#include "auto_limit.h"
#include "auto_limit_terms.h"
#include "limit_range.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kStepsMax = 12;
constexpr std::uint32_t kFloorPatienceMax = 64;
constexpr double kRoomSlowdown = 1.2;  // at a higher limit that is not full: no queue
constexpr double kFell = 0.65;         // of the best throughput of a probe: it is below the knee
constexpr Duration kConfirmFirst = seconds(2);
constexpr int kProbeTrips = 150;  // fewest round trips between two probes, for slow services
constexpr int kConfirmTrips = 20;

}  // namespace

LimitReason AutoLimit::begin_probe(const View& view, TimePoint now) noexcept {
  schedule_probe(now);
  common_ = common_probe_due(now);
  if (common_) {
    common_probe_ = {};
    wants_probe_until_ = {};
  }
  if (limit_ <= lowest(bounds_)) {
    verified_ = true;  // there is no lower limit to compare with: accept what is measured
    return LimitReason::kAtFloor;
  }
  probe_from_ = limit_;
  probe_best_ = view.throughput;
  probe_steps_ = 0;
  mark_ = mark_of(view);
  probing_ = true;
  doubted_ = false;
  samples_from_ = now;
  step_to(limit_ * kStepDown, now);
  return LimitReason::kProbe;
}

LimitReason AutoLimit::probe_step(const View& view, TimePoint now) noexcept {
  probe_best_ = std::max(probe_best_, view.throughput);
  const Effect effect = effect_of(view, mark_, kDoubt);
  // One window may be wrong by chance, and a wrong baseline costs more than another window, as does
  // a probe downwards because a test upwards was unclear. Where latencies are equal and a step
  // before was saturated, or if much of the throughput is gone, there is no doubt.
  if (!rising_ && view.throughput < kFell * probe_best_) {
    return end_probe(view, now, Proof::kMeasured);
  }
  const bool unsure = rising_ && view.full && effect == Effect::kUnclear;
  const bool doubtful = (unsure || effect == Effect::kNoQueue) && !(even_ && probe_steps_ > 0);
  if (doubtful && !std::exchange(doubted_, true)) return LimitReason::kProbe;
  doubted_ = false;
  if (rising_) {
    rising_ = probing_ = false;
    const bool room = !view.full && slowdown(view.shape, mark_.shape) < kRoomSlowdown;
    if (room || effect == Effect::kNoQueue) {
      shares() && verified_ ? want_probe(now) : adopt(view, now);
      floor_patience_ = kFloorPatienceMin;
    } else if (!verified_) {
      return begin_probe(view, now);
    } else {
      step_to(mark_.limit, now);
      floor_patience_ = std::min(floor_patience_ * 2, kFloorPatienceMax);
    }
    return LimitReason::kProbeEnded;
  }
  if (effect == Effect::kNoQueue) return end_probe(view, now, Proof::kMeasured);
  if (!view.full) return end_probe(view, now, Proof::kNone);
  if (verified_ && std::abs(slowdown(view.shape, baseline_) - 1) <= kConfirmed) {
    return end_probe(view, now, Proof::kMeasured);
  }
  if (limit_ <= lowest(bounds_) || ++probe_steps_ >= kStepsMax) {
    return end_probe(view, now, Proof::kNone);
  }
  mark_ = mark_of(view);
  samples_from_ = now;
  step_to(limit_ * (even_ ? kStepDownDeep : kStepDown), now);
  return LimitReason::kProbe;
}

// What the service can hold without a queue: in flight, scaled by the ratio of throughputs.
LimitReason AutoLimit::end_probe(const View& view, TimePoint now, Proof proof) noexcept {
  probing_ = false;
  // Alone, the best that can be measured is the baseline; others may have measured better.
  if (!common_ || proof == Proof::kMeasured) adopt(view, now);
  if (common_ && proof == Proof::kMeasured) publish(view, now);
  const double holds = view.in_flight * std::max(1.0, probe_best_ / view.throughput);
  double wanted = holds + 0.75 * slack(holds);
  if (!view.full) wanted = probe_from_;
  const bool saturated = wanted < probe_from_;
  if (starting_ && !saturated) wanted = std::max(wanted, probe_from_ * 2.0);
  if (saturated) starting_ = false;
  wanted = std::min(wanted, probe_from_ * 2.0);
  step_to(wanted, now);
  return LimitReason::kProbeEnded;
}

LimitReason AutoLimit::rise(const View& view, TimePoint now) noexcept {
  floor_windows_ = 0;
  rising_ = probing_ = true;
  doubted_ = false;
  probe_steps_ = 0;
  mark_ = mark_of(view);
  samples_from_ = now;
  step_to(std::max(limit_ * (verified_ ? 1.5 : 2.0), limit_ + 1.0), now);
  return LimitReason::kProbe;
}

// Saturated: latency follows the limit and throughput does not. No queue: the reverse.
AutoLimit::Effect AutoLimit::effect_of(const View& view, const Mark& mark, double doubt) noexcept {
  const double ratio = mark.in_flight > 0 ? view.in_flight / mark.in_flight : 1;
  if (std::abs(ratio - 1) < 0.05) return Effect::kUnclear;
  const double latency = slowdown(view.shape, mark.shape);
  const double throughput = mark.throughput > 0 ? view.throughput / mark.throughput : 1;
  // How far each moved from 1 towards the ratio of the step.
  const double latency_part = (latency - 1) / (ratio - 1);
  const double throughput_part = (throughput - 1) / (ratio - 1);
  if (latency_part < doubt && throughput_part > 1 - doubt) return Effect::kNoQueue;
  return latency_part > 0.5 ? Effect::kSaturated : Effect::kUnclear;
}

// ---- the baseline

void AutoLimit::learn_quietly(const View& view) noexcept {
  const double factor = slowdown(view.shape, baseline_);
  if (factor < 1) {
    if (view.whole && !view.left) baseline_.approach(view.shape, 0.2);
    return;
  }
  // Frozen: the limiter itself, or those of other gateways, may cause the slowdown.
  if (view.used || (shares() && full_gateways_ > 0)) return;
  // An unverified baseline may rise: it is not needed until a full limit requires a probe.
  const bool no_more_than_then = view.in_flight <= 1.1 * baseline_in_flight_;
  if (!verified_ || no_more_than_then) baseline_.approach(view.shape, 0.1);
  baseline_in_flight_ += (view.in_flight - baseline_in_flight_) * 0.05;
}

void AutoLimit::adopt(const View& view, TimePoint now) noexcept {
  const bool raised = known_ && slowdown(view.shape, baseline_) > 1 + kConfirmed;
  known_ = verified_ = true;
  descending_ = false;
  baseline_ = view.shape;
  baseline_in_flight_ = view.in_flight;
  if (raised) {
    confirm_after_ = confirm_after_.count() == 0 ? kConfirmFirst : confirm_after_ * 2;
    if (confirm_after_ > kProbeMin) confirm_after_ = kProbeMin;
  } else {
    confirm_after_ = {};
  }
  schedule_probe(now);
}

void AutoLimit::schedule_probe(TimePoint now) noexcept {
  Duration pause = rng_.between(kProbeMin, kProbeMax);
  pause = std::max(pause, latency_ * kProbeTrips);
  if (confirm_after_.count() > 0) pause = std::max(confirm_after_, latency_ * kConfirmTrips);
  next_probe_ = now + pause;
}

}  // namespace weir::inline v0::inline policy
