#include "gradient2_limit.h"

#include <algorithm>

#include "policy/overload_share.h"

namespace weir::inline v0::inline policy {
constexpr double kTolerance = 1.5;
constexpr double kSmoothing = 0.2;
constexpr double kHeadroom = 4;
constexpr double kOverloadStep = 0.5;  // if all answers report overload: half the limit
constexpr double kLongWindows = 600;
constexpr std::uint32_t kWarmup = 10;

void Gradient2Limit::learn(double avg_ns) noexcept {
  if (learned_ < kWarmup) {
    ++learned_;
    long_ns_ += (avg_ns - long_ns_) / learned_;
  } else {
    long_ns_ += (avg_ns - long_ns_) * 2 / (kLongWindows + 1);
  }
  if (long_ns_ > 2 * avg_ns) long_ns_ *= 0.95;
}

LimitDecision Gradient2Limit::on_window(const LimitSample& window) noexcept {
  LimitDecision decision{.limit = limit(), .reason = LimitReason::kNoSamples};
  if (window.overload_count > 0) return on_overload(window);
  const auto avg = static_cast<double>(window.latency_avg.count());
  if (window.sample_count == 0 || avg <= 0) return decision;
  learn(avg);
  decision.baseline = Duration(static_cast<std::int64_t>(long_ns_));
  if (window.in_flight_max < limit_ / 2) {
    decision.reason = LimitReason::kNotUsed;
    return decision;
  }
  const double gradient = std::clamp(kTolerance * long_ns_ / avg, 0.5, 1.0);
  const double wanted = limit_ * gradient + kHeadroom;
  const double before = limit_;
  limit_ = clamped(limit_ * (1 - kSmoothing) + wanted * kSmoothing);
  decision.limit = limit();
  decision.queue_estimate = before * (1 - gradient);
  if (limit_ < before) {
    decision.reason = LimitReason::kQueueing;
  } else if (limit_ > before) {
    decision.reason = LimitReason::kGrow;
  } else {
    decision.reason = wanted > before ? LimitReason::kAtCeiling : LimitReason::kAtFloor;
  }
  return decision;
}

// A refusal is fast, so latency does not show it.
LimitDecision Gradient2Limit::on_overload(const LimitSample& window) noexcept {
  const auto floor = static_cast<double>(lowest(bounds_));
  LimitReason reason = LimitReason::kAtFloor;
  if (limit_ > floor) {
    limit_ = std::max(floor, limit_ * (1 - overload_share_of(window) * kOverloadStep));
    reason = LimitReason::kOverload;
  }
  return {.limit = limit(),
          .reason = reason,
          .baseline = Duration(static_cast<std::int64_t>(long_ns_))};
}

std::unique_ptr<LimitPolicy> make_gradient2_limit(const LimitConfig& config, Rng /*rng*/) {
  return std::make_unique<Gradient2Limit>(config);
}

}  // namespace weir::inline v0::inline policy
