#include "aimd_limit.h"

#include <algorithm>

namespace weir::inline v0::inline policy {

LimitDecision AimdLimit::on_window(const LimitSample& window) noexcept {
  LimitReason reason = LimitReason::kNoSamples;
  if (window.overload_count > 0) {
    reason = back_off();
  } else if (window.sample_count > 0) {
    reason = grow(window);
  }
  return {.limit = limit_, .reason = reason};
}

LimitReason AimdLimit::back_off() noexcept {
  const std::uint32_t floor = lowest(bounds_);
  if (limit_ <= floor) return LimitReason::kAtFloor;
  const auto scaled = static_cast<std::uint32_t>(limit_ * std::clamp(backoff_, 0.0, 1.0));
  limit_ = std::max(floor, std::min(scaled, limit_ - 1));
  return LimitReason::kOverload;
}

LimitReason AimdLimit::grow(const LimitSample& window) noexcept {
  if (limit_ >= bounds_.max) return LimitReason::kAtCeiling;
  if (std::uint64_t{window.in_flight_max} * 2 < limit_) return LimitReason::kNotUsed;
  ++limit_;
  return LimitReason::kGrow;
}

std::unique_ptr<LimitPolicy> make_aimd_limit(const LimitConfig& config, Rng /*rng*/) {
  return std::make_unique<AimdLimit>(config);
}

}  // namespace weir::inline v0::inline policy
