#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/policy/priority.h"

#include "route_table.h"
#include "trust.h"

namespace weir::inline v0::gateway {

/// What a request says of itself, as far as its sender may say it.
struct Intent {
  Priority priority = Priority::kNormal;
  std::optional<Duration> time_left;  // x-weir-deadline-ms
  bool hedge = false;                 // x-weir-attempt above 1: a second attempt at a read
};

/// The route's word goes first, then a trusted peer's; everybody else says nothing that counts. An
/// unknown class is normal; a deadline that is no number is none; the longest is a day.
[[nodiscard]] Intent read_intent(const http::HeaderList& headers, const Caller& caller,
                                 const Route& route) noexcept;

}  // namespace weir::inline v0::gateway
