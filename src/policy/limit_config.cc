#include "weir/policy/limit_config.h"

#include "weir/base/config_check.h"
#include "weir/policy/class_admission.h"

namespace weir::inline v0::inline policy {

ConfigErrors LimitConfig::validate() const {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  ConfigErrors errors;
  check_range(errors, "max_limit", max_limit, 1U, kClassUnitsMax);
  const std::uint32_t below =
      max_limit >= 1 && max_limit <= kClassUnitsMax ? max_limit : kClassUnitsMax;
  check_range(errors, "initial_limit", initial_limit, 1U, below);
  check_range(errors, "min_limit", min_limit, 0U, below);
  check_range(errors, "window_duration_ms", window_duration, Duration(milliseconds(10)),
              Duration(seconds(60)));
  constexpr double kQueueMax = kClassUnitsMax;
  check_range(errors, "vegas_alpha", vegas_alpha, 0.0, kQueueMax);
  check_range(errors, "vegas_beta", vegas_beta, 0.0, kQueueMax);
  if (vegas_beta < vegas_alpha) {
    check_range(errors, "vegas_beta", vegas_beta, vegas_alpha, kQueueMax);
  }
  check_range(errors, "aimd_backoff", aimd_backoff, 0.1, 0.99);
  return errors;
}

}  // namespace weir::inline v0::inline policy
