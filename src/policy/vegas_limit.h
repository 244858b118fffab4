#pragma once

#include "weir/policy/limit_config.h"

namespace weir::inline v0::policy {

/// TCP Vegas, carried over to concurrency. Once per window that holds samples:
///
///   baseline = min(baseline, avg)                  smallest window average ever seen, from 60 s
///   down queue    = in flight × (1 − baseline / avg)    requests that wait inside the service
///   queue < alpha: limit + 1      queue > beta: limit − 1      otherwise as it is
///
/// In flight is read when the window closes. This is the plain rule, with its known weaknesses: the
/// baseline never rises again, an idle service's limit grows, and a step of one a second is slow.
/// It is kept exact so that others can be measured against it; `auto` is the default.
///
/// A window whose baseline is zero (a clock too coarse) decides nothing.
class VegasLimit final : public LimitPolicy {
 public:
  static constexpr Duration kUnknownBaseline = std::chrono::seconds(60);

  explicit VegasLimit(const LimitConfig& config, Duration baseline = kUnknownBaseline) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;
  [[nodiscard]] std::uint32_t limit() const noexcept override { return limit_; }
  [[nodiscard]] WindowRules window_rules() const noexcept override;
  void set_bounds(const LimitBounds& bounds) noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override {
    return name_of(LimitKind::kVegas);
  }

 private:
  [[nodiscard]] LimitReason step(double queue) noexcept;

  double alpha_;
  double beta_;
  Duration window_;
  LimitBounds bounds_;
  std::uint32_t limit_;
  Duration baseline_;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_vegas_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::policy
