#include "weir/policy/limit_policy.h"

#include "weir/base/assert.h"
#include "weir/policy/limit_config.h"

namespace weir::inline v0::inline policy {

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
