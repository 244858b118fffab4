#pragma once

#include <cstdint>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"

namespace weir::inline v0::control {

/// Bounds of the outgoing queues, one queue per destination.
struct OutgoingConfig {
  std::uint32_t queue_size = 500;               // items of one destination
  std::uint32_t overflow_size = 100;            // items of its overflow ring
  std::uint32_t max_destinations = 1000;        // queues; a new one replaces an idle one
  std::uint64_t queue_bytes_max = 16U << 20U;   // bytes of one destination
  std::uint64_t total_bytes_max = 256U << 20U;  // bytes of all

  bool operator==(const OutgoingConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors OutgoingConfig::validate() const {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 42U;
  ConfigErrors errors;
  check_range(errors, "queue_size", queue_size, 1U, 1000000U);
  check_range(errors, "overflow_size", overflow_size, 0U, 1000000U);
  check_range(errors, "max_destinations", max_destinations, 1U, 1000000U);
  check_range(errors, "queue_bytes_max", queue_bytes_max, std::uint64_t{1024}, kBytesMax);
  check_range(errors, "total_bytes_max", total_bytes_max, std::uint64_t{1024}, kBytesMax);
  if (total_bytes_max < queue_bytes_max) {
    check_range(errors, "total_bytes_max", total_bytes_max, queue_bytes_max, kBytesMax);
  }
  return errors;
}

}  // namespace weir::inline v0::control

namespace weir::inline v0 {
using control::OutgoingConfig;
}  // namespace weir::inline v0
