#include "fixed_limit.h"

namespace weir::inline v0::inline policy {

std::unique_ptr<LimitPolicy> make_fixed_limit(const LimitConfig& config, Rng /*rng*/) {
  return std::make_unique<FixedLimit>(config);
}

}  // namespace weir::inline v0::inline policy
