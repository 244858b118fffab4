#include "weir/control/outgoing_config.h"

#include "weir/base/config_check.h"

namespace weir::inline v0::inline control {

ConfigErrors OutgoingConfig::validate() const {
  constexpr std::uint32_t kItemsMax = 1'000'000;
  ConfigErrors errors;
  check_range(errors, "queue_size", queue_size, 1U, kItemsMax);
  check_range(errors, "overflow_size", overflow_size, 0U, kItemsMax);
  check_range(errors, "critical_size", critical_size, 1U, kItemsMax);
  check_range(errors, "max_destinations", max_destinations, 1U, 100'000U);
  check_range(errors, "in_flight_max", in_flight_max, 1U, kItemsMax);
  check_range(errors, "destination_bytes_max", destination_bytes_max.bytes(), std::uint64_t{1},
              std::uint64_t{1} << 40U);
  check_range(errors, "total_bytes_max", total_bytes_max.bytes(), destination_bytes_max.bytes(),
              std::uint64_t{1} << 40U);
  return errors;
}

}  // namespace weir::inline v0::inline control
