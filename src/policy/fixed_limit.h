#pragma once

#include "limit_range.h"

namespace weir::inline v0::inline policy {

/// Always the configured initial limit; only new bounds change it.
class FixedLimit final : public BoundedLimit<std::uint32_t> {
 public:
  explicit FixedLimit(const LimitConfig& config) noexcept
      : BoundedLimit(LimitKind::kFixed, config) {}

  [[nodiscard]] LimitDecision on_window(const LimitSample&) noexcept override {
    return {.limit = limit_, .reason = LimitReason::kConfigured};
  }
  void set_bounds(const LimitBounds& bounds) noexcept override {
    limit_ = in_bounds(bounds.initial, bounds);
  }
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_fixed_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
