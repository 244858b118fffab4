#pragma once

#include "weir/policy/limit_config.h"

namespace weir::inline v0::inline policy {

/// Always the configured initial limit; only new bounds change it.
class FixedLimit final : public LimitPolicy {
 public:
  explicit FixedLimit(const LimitConfig& config) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;
  [[nodiscard]] std::uint32_t limit() const noexcept override { return limit_; }
  [[nodiscard]] WindowRules window_rules() const noexcept override;
  void set_bounds(const LimitBounds& bounds) noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override {
    return name_of(LimitKind::kFixed);
  }

 private:
  Duration window_;
  std::uint32_t limit_;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_fixed_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
