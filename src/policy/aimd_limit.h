#pragma once

#include "weir/policy/limit_config.h"

namespace weir::inline v0::inline policy {

/// Additive increase, multiplicative decrease. It ignores latency and uses only the overload
/// outcomes that the protected service reports.
///
///   a window with an overload outcome:  limit × backoff, rounded down, at least 1 less
///   otherwise, if half the limit was in use at some time:  limit + 1
///   otherwise:  unchanged (an unused limit tells nothing about the service)
class AimdLimit final : public LimitPolicy {
 public:
  explicit AimdLimit(const LimitConfig& config) noexcept;

  [[nodiscard]] LimitDecision on_window(const LimitSample& window) noexcept override;
  [[nodiscard]] std::uint32_t limit() const noexcept override { return limit_; }
  [[nodiscard]] WindowRules window_rules() const noexcept override;
  void set_bounds(const LimitBounds& bounds) noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override {
    return name_of(LimitKind::kAimd);
  }

 private:
  [[nodiscard]] LimitReason back_off() noexcept;
  [[nodiscard]] LimitReason grow(const LimitSample& window) noexcept;

  double backoff_;
  Duration window_;
  LimitBounds bounds_;
  std::uint32_t limit_;
};

[[nodiscard]] std::unique_ptr<LimitPolicy> make_aimd_limit(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
