#pragma once

#include "limit_range.h"

namespace weir::inline v0::inline policy {

/// Additive increase, multiplicative decrease. It ignores latency and uses only the overload
/// outcomes that the protected service reports.
///
///   a window with an overload outcome:  limit × backoff, rounded down, at least 1 less
///   otherwise, if half the limit was in use at some time:  limit + 1
///   otherwise:  unchanged (an unused limit tells nothing about the service)
class AimdLimit final : public BoundedLimit<std::uint32_t> {
 public:
  explicit AimdLimit(const LimitConfig& config) noexcept
      : BoundedLimit(LimitKind::kAimd, config), backoff_(config.aimd_backoff) {}

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;

 private:
  [[nodiscard]] LimitReason back_off() noexcept;
  [[nodiscard]] LimitReason grow(const LimitSample& window) noexcept;

  double backoff_;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_aimd_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
