#include "weir/policy/limit_policy.h"

#include <array>

#include "weir/base/assert.h"
#include "weir/policy/limit_config.h"

#include "policy/aimd_limit.h"
#include "policy/fixed_limit.h"
#include "policy/vegas_limit.h"

namespace weir::inline v0 {

std::string_view name_of(LimitReason reason) noexcept {
  constexpr std::array<std::string_view, 13> kNames = {
      "hold",       "no_samples", "grow",  "not_used",    "queueing",   "overload",  "at_floor",
      "at_ceiling", "starting",   "probe", "probe_ended", "peak_bound", "configured"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::unique_ptr<LimitPolicy> make_limit_policy(const LimitConfig& config, Rng) {
  switch (config.policy) {
    case LimitKind::kFixed:
      return std::make_unique<FixedLimit>(config);
    case LimitKind::kAimd:
      return std::make_unique<AimdLimit>(config);
    case LimitKind::kVegas:
    // These two have no class of their own yet; what they get says so by its name().
    case LimitKind::kGradient2:
    case LimitKind::kAuto:
      return std::make_unique<VegasLimit>(config);
  }
  WEIR_UNREACHABLE();
}

}  // namespace weir::inline v0
