#pragma once

#include "weir/policy/limit_config.h"

namespace weir::inline v0::policy {

/// The gradient rule that many services run today. Once per window that holds samples:
///
///   long  = exponential average of the window averages, over the last 600 windows (the first ten
///           weigh evenly); when long > 2 × avg it sinks by 5 %, to come down from a slow spell
///   grad  = clamp(1.5 × long / avg, 0.5, 1)
///   limit = 0.8 × limit + 0.2 × (limit × grad + 4), if at least half of it was used
///
/// Its known weaknesses are kept: the long average follows an overload upwards until the gradient
/// is 1 again, and the + 4 lets it creep while a mild overload lasts. It is here to be compared
/// with; `auto` is the default.
class Gradient2Limit final : public LimitPolicy {
 public:
  explicit Gradient2Limit(const LimitConfig& config) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;
  [[nodiscard]] std::uint32_t limit() const noexcept override;
  [[nodiscard]] WindowRules window_rules() const noexcept override;
  void set_bounds(const LimitBounds& bounds) noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override {
    return name_of(LimitKind::kGradient2);
  }

 private:
  void learn(double avg_ns) noexcept;

  Duration window_;
  LimitBounds bounds_;
  double limit_;  // fractions are kept: steps of 0.8 must add up
  double long_ns_ = 0;
  std::uint32_t learned_ = 0;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_gradient2_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::policy
