#include "weir/policy/limit_policy.h"

#include <array>

namespace weir::inline v0 {

std::string_view name_of(LimitReason reason) noexcept {
  constexpr std::array<std::string_view, 13> kNames = {
      "hold",       "no_samples", "grow",  "not_used",    "queueing",   "overload",  "at_floor",
      "at_ceiling", "starting",   "probe", "probe_ended", "peak_bound", "configured"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace weir::inline v0
