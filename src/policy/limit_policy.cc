#include "weir/policy/limit_policy.h"

#include <array>

#include "weir/base/assert.h"
#include "weir/policy/limit_config.h"

#include "aimd_limit.h"
#include "auto_limit.h"
#include "fixed_limit.h"
#include "gradient2_limit.h"
#include "vegas_limit.h"

namespace weir::inline v0::policy {

std::string_view name_of(LimitReason reason) noexcept {
  constexpr std::array<std::string_view, 13> kNames = {
      "hold",       "no_samples", "grow",  "not_used",    "queueing",   "overload",  "at_floor",
      "at_ceiling", "starting",   "probe", "probe_ended", "peak_bound", "configured"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::unique_ptr<LimitPolicy> make_limit_policy(const LimitConfig& config, Rng rng) {
  switch (config.policy) {
    case LimitKind::kFixed:
      return std::make_unique<FixedLimit>(config);
    case LimitKind::kAimd:
      return std::make_unique<AimdLimit>(config);
    case LimitKind::kVegas:
      return std::make_unique<VegasLimit>(config);
    case LimitKind::kGradient2:
      return std::make_unique<Gradient2Limit>(config);
    case LimitKind::kAuto:
      return std::make_unique<AutoLimit>(config, rng);
  }
  WEIR_UNREACHABLE();
}

}  // namespace weir::inline v0::policy
