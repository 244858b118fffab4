#pragma once

#include "limit_range.h"

namespace weir::inline v0::inline policy {

/// TCP Vegas, applied to concurrency. Once per window that has samples:
///
///   baseline = min(baseline, avg)                  smallest window average so far; initially 60 s
///   queue    = in flight × (1 − baseline / avg)    requests that wait inside the service
///   queue < alpha: limit + 1      queue > beta: limit − 1      otherwise unchanged
///
/// In flight is read when the window closes. This is the plain rule, with its known weaknesses: the
/// baseline never rises again, the limit of an idle service grows, and one step per second is slow.
/// It is kept exact so that others can be compared with it; `auto` is the default.
///
/// A window whose baseline is zero (the clock is too coarse) changes nothing.
class VegasLimit final : public BoundedLimit<std::uint32_t> {
 public:
  static constexpr Duration kUnknownBaseline = std::chrono::seconds(60);

  explicit VegasLimit(const LimitConfig& config, Duration baseline = kUnknownBaseline) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;

 private:
  [[nodiscard]] LimitReason step(double queue) noexcept;

  double alpha_;
  double beta_;
  Duration baseline_;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_vegas_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
