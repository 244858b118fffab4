#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/policy/limit_policy.h"

namespace weir::inline v0::inline policy {

// Every limiter, once: enumerator and name. src/policy/<name>_limit.cc defines its factory,
// make_<name>_limit(config, rng).
#define WEIR_LIMITERS(X)   \
  X(kFixed, fixed)         \
  X(kAimd, aimd)           \
  X(kVegas, vegas)         \
  X(kGradient2, gradient2) \
  X(kAuto, auto)

enum class LimitKind : std::uint8_t {
#define WEIR_X(enumerator, name) enumerator,
  WEIR_LIMITERS(WEIR_X)
#undef WEIR_X
};

#define WEIR_X(enumerator, name) #name,
WEIR_ENUM_NAMES(LimitKind, WEIR_LIMITERS(WEIR_X))
#undef WEIR_X
[[nodiscard]] constexpr std::optional<LimitKind> limit_kind_named(std::string_view name) noexcept {
  return named<LimitKind>(name);
}

/// How the concurrency limit of one scope is set. The smaller of this limit and max_concurrent
/// applies.
struct LimitConfig {
  LimitKind policy = LimitKind::kAuto;
  std::uint32_t initial_limit = 128;
  std::uint32_t min_limit = 0;  // 0: 1 under auto, which may need it, and 8 under the others
  std::uint32_t max_limit = 1024;
  Duration window_duration = std::chrono::seconds(1);
  double vegas_alpha = 2.0;   // grow below this estimated queue
  double vegas_beta = 8.0;    // shrink above it
  double aimd_backoff = 0.9;  // factor on overload

  /// min(min_limit, initial_limit): an initial limit below the minimum lowers the minimum.
  [[nodiscard]] std::uint32_t effective_min() const noexcept {
    const std::uint32_t usual = policy == LimitKind::kAuto ? 1 : 8;
    const std::uint32_t min = min_limit != 0 ? min_limit : usual;
    return initial_limit < min ? initial_limit : min;
  }
  [[nodiscard]] LimitBounds bounds() const noexcept {
    return {.min = effective_min(), .initial = initial_limit, .max = max_limit};
  }
  /// A change of bounds alone needs no new policy: what a policy has learned stays valid.
  void take_bounds_of(const LimitConfig& other) noexcept {
    initial_limit = other.initial_limit;
    min_limit = other.min_limit;
    max_limit = other.max_limit;
  }
  bool operator==(const LimitConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// Creates the policy of that kind. `rng` gives the jitter of probes; it is seeded, so a run can be
/// replayed.
[[nodiscard]] std::unique_ptr<LimitPolicy> make_limit_policy(const LimitConfig& config, Rng rng);

}  // namespace weir::inline v0::inline policy
