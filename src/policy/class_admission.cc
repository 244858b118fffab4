#include "weir/policy/class_admission.h"

#include "weir/base/config_check.h"

namespace weir::inline v0::inline policy {

ConfigErrors ClassRules::validate() const {
  ConfigErrors errors;
  check_range(errors, "class_cap_critical", caps[index_of(Priority::kCritical)], 0U, 0U);
  check_range(errors, "class_cap_high", caps[index_of(Priority::kHigh)], 0U, kClassUnitsMax);
  check_range(errors, "class_cap_normal", caps[index_of(Priority::kNormal)], 0U, kClassUnitsMax);
  check_range(errors, "class_cap_low", caps[index_of(Priority::kLow)], 0U, kClassUnitsMax);
  check_range(errors, "share_high_permille", share_high_permille, 1U, 1000U);
  check_range(errors, "share_normal_permille", share_normal_permille, 1U, 1000U);
  check_range(errors, "share_low_permille", share_low_permille, 1U, 1000U);
  check_range(errors, "share_hedge_permille", share_hedge_permille, 1U, 1000U);
  return errors;
}

}  // namespace weir::inline v0::inline policy
