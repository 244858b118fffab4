#pragma once

#include "limit_range.h"

namespace weir::inline v0::inline policy {

/// The gradient rule that many services use. Once per window that has samples:
///
///   long  = exponential average of the window averages, over the last 600 windows (the first ten
///           have equal weight); while long > 2 × avg it is lowered by 5 %, to recover faster
///   grad  = clamp(1.5 × long / avg, 0.5, 1)
///   limit = 0.8 × limit + 0.2 × (limit × grad + 4), if at least half of it was used
///
/// Its known weaknesses are kept: the long average rises during an overload until the gradient is 1
/// again, and the + 4 raises the limit slowly during a mild overload. It exists for comparison;
/// `auto` is the default.
class Gradient2Limit final : public BoundedLimit<double> {
 public:
  explicit Gradient2Limit(const LimitConfig& config) noexcept
      : BoundedLimit(LimitKind::kGradient2, config) {}

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;

 private:
  void learn(double avg_ns) noexcept;
  [[nodiscard]] LimitDecision on_overload(const LimitSample& window) noexcept;

  double long_ns_ = 0;
  std::uint32_t learned_ = 0;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_gradient2_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
