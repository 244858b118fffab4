#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/enum_names.h"

namespace weir::inline v0::inline policy {

/// How the endpoint of an attempt is chosen.
enum class Balance : std::uint8_t {
  kPeakEwma,       // the better of two random ones by score × (in flight + 1) ÷ weight
  kRoundRobin,     // in turn, by weight
  kLeastRequests,  // the least (in flight + 1) ÷ weight: of all up to 16 endpoints, else of two
  kHash,           // by a key, with bounded load
};
WEIR_ENUM_NAMES(Balance, "peak_ewma", "round_robin", "least_requests", "hash")

}  // namespace weir::inline v0::inline policy
