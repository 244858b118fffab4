#pragma once

#include <cstdint>

#include "weir/base/byte_size.h"
#include "weir/base/config_error.h"
#include "weir/policy/outgoing_state.h"

namespace weir::inline v0::inline control {

/// The bounds of the queues to destinations.
struct OutgoingConfig {
  std::uint32_t queue_size = 500;         // items per destination
  std::uint32_t overflow_size = 100;      // items in the overflow ring of a destination
  std::uint32_t critical_size = 100;      // places for critical items only, per destination
  std::uint32_t max_destinations = 1000;  // that have a queue at the same time
  std::uint32_t in_flight_max = 64;       // items per destination and loop that are being sent
  ByteSize destination_bytes_max = mib(4);
  ByteSize total_bytes_max = mib(64);  // of all destinations
  policy::AdviceProfile advice = policy::AdviceProfile::kMonotone;

  bool operator==(const OutgoingConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
  /// The most bytes that items can hold: the total, and as much again for critical ones, which are
  /// counted apart so that others cannot take their room.
  [[nodiscard]] ByteSize worst_case_bytes() const noexcept { return total_bytes_max * 2; }
};

}  // namespace weir::inline v0::inline control
