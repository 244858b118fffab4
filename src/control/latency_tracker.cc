#include "control/latency_tracker.h"

#include <algorithm>
#include <limits>

namespace weir::inline v0::inline control {
namespace {

constexpr std::uint32_t kQuantileAge = 32;  // computed again after samples / 32 new ones

/// The same evidence without the clamp: what a cancelled attempt is compared with.
policy::HedgeConfig without_clamp(policy::HedgeConfig config) noexcept {
  config.min_delay = Duration::zero();
  config.max_delay = Duration::max();
  config.default_delay = Duration::zero();
  return config;
}

}  // namespace

void LatencyTracker::forget_before(TimePoint now) noexcept {
  const Duration half = std::max(config_.window / 2, Duration(1));
  if (began_ == TimePoint{}) began_ = now;
  const Duration age = now - began_;
  if (age < half) return;
  unread_ = std::numeric_limits<std::uint32_t>::max();
  if (age >= 2 * half) {
    halves_ = {};
    mean_ = {};
    error_rate_ = 0;
    began_ = now;
    return;
  }
  current_ ^= 1U;
  halves_[current_] = {};
  began_ += half;
}

void LatencyTracker::add(Duration latency) noexcept {
  Half& half = halves_[current_];
  std::uint16_t& count = half.counts[LatencyBuckets::index(latency)];
  if (count == std::numeric_limits<std::uint16_t>::max()) {
    half.samples = 0;
    for (std::uint16_t& other : half.counts) {
      other = static_cast<std::uint16_t>(other / 2);
      half.samples += other;
    }
  }
  ++count;
  ++half.samples;
  if (unread_ != std::numeric_limits<std::uint32_t>::max()) ++unread_;
  mean_ = policy::with_latency(mean_, latency, config_.alpha);
}

void LatencyTracker::record(const AttemptLatency& sample, TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  forget_before(now);
  const bool cancelled = sample.end == AttemptEnd::kCancelled;
  if (!cancelled) {
    const double error = sample.end == AttemptEnd::kAnswered ? 0 : 1;
    error_rate_ += config_.alpha * (error - error_rate_);
  }
  if (sample.end == AttemptEnd::kFailed) return;
  if (cancelled && sample.latency <= current_delay(without_clamp(config_)).delay) return;
  add(sample.latency);
}

policy::HedgeDelay LatencyTracker::current_delay(const policy::HedgeConfig& config) noexcept {
  const std::uint32_t total = samples();
  if (total >= policy::kQuantileSamplesMin && unread_ > total / kQuantileAge) {
    quantile_ = percentile(Sum{halves_[0], halves_[1]}, total, config_.quantile);
    unread_ = 0;
  }
  return policy::hedge_delay({.samples = total, .mean = mean_, .quantile = quantile_}, config);
}

policy::HedgeDelay LatencyTracker::hedge_delay(TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  forget_before(now);
  return current_delay(config_);
}

LatencyReading LatencyTracker::reading(TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  forget_before(now);
  unread_ = std::numeric_limits<std::uint32_t>::max();
  return {.delay = current_delay(config_),
          .samples = samples(),
          .mean = Duration(static_cast<std::int64_t>(mean_.ns)),
          .median = percentile(Sum{halves_[0], halves_[1]}, samples(), 0.5),
          .error_rate = error_rate_};
}

void LatencyTracker::set_config(const policy::HedgeConfig& config) noexcept {
  const std::scoped_lock lock(mutex_);
  config_ = config;
  unread_ = std::numeric_limits<std::uint32_t>::max();
}

}  // namespace weir::inline v0::inline control
