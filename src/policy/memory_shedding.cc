#include "weir/policy/memory_shedding.h"

#include "weir/base/config_check.h"

namespace weir::inline v0::inline policy {

ConfigErrors MemoryRules::validate() const {
  ConfigErrors errors;
  check_range(errors, "memory_pressure_threshold", memory_pressure_threshold, 0.05, 1.0);
  check_range(errors, "memory_critical_threshold", memory_critical_threshold, 0.05, 1.0);
  // Not reported if either is NaN: the range check has reported it already.
  if (memory_critical_threshold < memory_pressure_threshold) {
    check_range(errors, "memory_critical_threshold", memory_critical_threshold,
                memory_pressure_threshold, 1.0);
  }
  check_range(errors, "low_priority_shed_ratio", low_priority_shed_ratio, 0.0, 1.0);
  // Below 0.05, so that every level can be left again.
  check_range(errors, "leave_margin", leave_margin, 0.0, 0.04);
  return errors;
}

}  // namespace weir::inline v0::inline policy
