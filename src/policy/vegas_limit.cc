#include "vegas_limit.h"

#include <algorithm>

namespace weir::inline v0::inline policy {

VegasLimit::VegasLimit(const LimitConfig& config, Duration baseline) noexcept
    : BoundedLimit(LimitKind::kVegas, config),
      alpha_(config.vegas_alpha),
      beta_(config.vegas_beta),
      baseline_(baseline) {}

LimitDecision VegasLimit::on_window(const LimitSample& window) noexcept {
  LimitDecision decision{.limit = limit_, .reason = LimitReason::kNoSamples};
  if (window.sample_count > 0) {
    baseline_ = std::min(baseline_, std::max(window.latency_avg, Duration(0)));
    if (baseline_ > Duration(0)) {
      decision.queue_estimate =
          window.in_flight * (1.0 - to_seconds(baseline_) / to_seconds(window.latency_avg));
      decision.reason = step(decision.queue_estimate);
      decision.limit = limit_;
    }
  }
  if (baseline_ != kUnknownBaseline) decision.baseline = baseline_;
  return decision;
}

LimitReason VegasLimit::step(double queue) noexcept {
  if (queue < alpha_) {
    if (limit_ >= bounds_.max) return LimitReason::kAtCeiling;
    ++limit_;
    return LimitReason::kGrow;
  }
  if (queue > beta_) {
    if (limit_ <= lowest(bounds_)) return LimitReason::kAtFloor;
    --limit_;
    return LimitReason::kQueueing;
  }
  return LimitReason::kHold;
}

std::unique_ptr<LimitPolicy> make_vegas_limit(const LimitConfig& config, Rng /*rng*/) {
  return std::make_unique<VegasLimit>(config);
}

}  // namespace weir::inline v0::inline policy
