#include "weir/policy/limit_policy.h"

#include <array>

#include "weir/base/assert.h"
#include "weir/policy/limit_config.h"

namespace weir::inline v0::inline policy {

std::string_view name_of(LimitReason reason) noexcept {
  constexpr std::array<std::string_view, 13> kNames = {
      "hold",       "no_samples", "grow",  "not_used",    "queueing",   "overload",  "at_floor",
      "at_ceiling", "starting",   "probe", "probe_ended", "peak_bound", "configured"};
  return kNames[static_cast<std::size_t>(reason)];
}

#define WEIR_X(enumerator, name) \
  std::unique_ptr<LimitPolicy> make_##name##_limit(const LimitConfig& config, Rng rng);
WEIR_LIMITERS(WEIR_X)
#undef WEIR_X

std::unique_ptr<LimitPolicy> make_limit_policy(const LimitConfig& config, Rng rng) {
  switch (config.policy) {
#define WEIR_X(enumerator, name) \
  case LimitKind::enumerator:    \
    return make_##name##_limit(config, rng);
    WEIR_LIMITERS(WEIR_X)
#undef WEIR_X
  }
  WEIR_UNREACHABLE();
}

}  // namespace weir::inline v0::inline policy
