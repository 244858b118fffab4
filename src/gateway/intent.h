#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/policy/priority.h"

#include "route_table.h"
#include "trust.h"

namespace weir::inline v0::gateway {

/// What a request says about itself, as far as its sender is trusted.
struct Intent {
  Priority priority = Priority::kNormal;
  std::optional<Duration> time_left;  // x-weir-deadline-ms
  bool hedge = false;                 // x-weir-attempt above 1: a second attempt
};

/// The route's values are used first, then those of a trusted peer; those of other senders are
/// ignored. An unknown class is normal; a deadline that is not a number is ignored; the longest is
/// one day.
[[nodiscard]] Intent read_intent(const http::HeaderList& headers, const Caller& caller,
                                 const Route& route) noexcept;

}  // namespace weir::inline v0::gateway
