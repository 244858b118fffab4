#include "fixed_limit.h"

#include "limit_range.h"

namespace weir::inline v0::inline policy {

FixedLimit::FixedLimit(const LimitConfig& config) noexcept
    : window_(config.window_duration), limit_(in_bounds(config.initial_limit, config.bounds())) {}

LimitDecision FixedLimit::on_window(const LimitSample&) noexcept {
  return {.limit = limit_, .reason = LimitReason::kConfigured};
}

WindowRules FixedLimit::window_rules() const noexcept {
  return {.duration = window_, .duration_min = window_, .early_close_samples = 0};
}

void FixedLimit::set_bounds(const LimitBounds& bounds) noexcept {
  limit_ = in_bounds(bounds.initial, bounds);
}

std::unique_ptr<LimitPolicy> make_fixed_limit(const LimitConfig& config, Rng /*rng*/) {
  return std::make_unique<FixedLimit>(config);
}

}  // namespace weir::inline v0::inline policy
