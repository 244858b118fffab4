#include "gradient2_limit.h"

#include <algorithm>

#include "limit_range.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr double kTolerance = 1.5;
constexpr double kSmoothing = 0.2;
constexpr double kHeadroom = 4;
constexpr double kLongWindows = 600;
constexpr std::uint32_t kWarmup = 10;

}  // namespace

Gradient2Limit::Gradient2Limit(const LimitConfig& config) noexcept
    : window_(config.window_duration),
      bounds_(config.bounds()),
      limit_(in_bounds(config.initial_limit, bounds_)) {}

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
  limit_ = std::clamp(limit_ * (1 - kSmoothing) + wanted * kSmoothing,
                      static_cast<double>(lowest(bounds_)),
                      static_cast<double>(std::max(lowest(bounds_), bounds_.max)));
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

std::uint32_t Gradient2Limit::limit() const noexcept {
  return static_cast<std::uint32_t>(limit_);
}

WindowRules Gradient2Limit::window_rules() const noexcept {
  return {.duration = window_, .duration_min = window_, .early_close_samples = 0};
}

void Gradient2Limit::set_bounds(const LimitBounds& bounds) noexcept {
  bounds_ = bounds;
  limit_ = std::clamp(limit_, static_cast<double>(lowest(bounds_)),
                      static_cast<double>(std::max(lowest(bounds_), bounds_.max)));
}

std::unique_ptr<LimitPolicy> make_gradient2_limit(const LimitConfig& config, Rng /*rng*/) {
  return std::make_unique<Gradient2Limit>(config);
}

}  // namespace weir::inline v0::inline policy
