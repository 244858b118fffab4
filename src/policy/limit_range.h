#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/policy/limit_config.h"

namespace weir::inline v0::inline policy {

/// The lowest value of a limit: min, or initial if that is lower, and never 0, because a limit of 0
/// gets no samples and could never grow.
[[nodiscard]] constexpr std::uint32_t lowest(const LimitBounds& bounds) noexcept {
  return std::max<std::uint32_t>(1, std::min(bounds.min, bounds.initial));
}

/// The nearest limit that the bounds allow; if they cross, the floor applies.
[[nodiscard]] constexpr std::uint32_t in_bounds(std::uint32_t limit,
                                                const LimitBounds& bounds) noexcept {
  return std::max(lowest(bounds), std::min(limit, bounds.max));
}

/// What limiters with windows of one length share. Number: uint32, or double to keep fractions.
template <class Number>
class BoundedLimit : public LimitPolicy {
 public:
  BoundedLimit(LimitKind kind, const LimitConfig& config) noexcept
      : bounds_(config.bounds()),
        limit_(in_bounds(config.initial_limit, bounds_)),
        window_(config.window_duration),
        kind_(kind) {}

  [[nodiscard]] std::uint32_t limit() const noexcept override {
    return static_cast<std::uint32_t>(limit_);
  }
  [[nodiscard]] WindowRules window_rules() const noexcept override {
    return {.duration = window_, .duration_min = window_, .early_close_samples = 0};
  }
  void set_bounds(const LimitBounds& bounds) noexcept override {
    bounds_ = bounds;
    limit_ = clamped(limit_);
  }
  [[nodiscard]] std::string_view name() const noexcept override { return name_of(kind_); }

 protected:
  [[nodiscard]] Number clamped(Number limit) const noexcept {
    return std::max<Number>(lowest(bounds_), std::min<Number>(limit, bounds_.max));
  }

  LimitBounds bounds_;
  Number limit_;

 private:
  Duration window_;
  LimitKind kind_;
};

}  // namespace weir::inline v0::inline policy
