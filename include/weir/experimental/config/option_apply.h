#pragma once

#include <cstdint>
#include <string_view>

namespace weir::inline v0::config {

/// How a changed option takes effect: by a restart, or by the function of the gateway that puts it
/// in force at a reload (src/gateway/live_options.cc has one for each).
enum class OptionApply : std::uint8_t {
  kRestart,
  kTls,        // certificates and what is offered in handshakes
  kAdmission,  // the numbers and modes of the admission rules
  kLimits,     // how the limit of each upstream is found
  kTimeouts,   // towards upstreams
  kRetries,    // how many retries an upstream may get
  kHedge,      // when and how often reads are hedged
  kEndpoints,  // where the endpoints of each upstream come from
  kDialTls,    // certificates and what is verified towards upstreams
  kReplace,    // an upstream comes, goes, or is replaced by a new one of the same name
  kRules,      // routes, trust, identity, access log
  kOnUse,      // read from the configuration in force when it is needed
};

[[nodiscard]] constexpr bool is_live(OptionApply apply) noexcept {
  return apply != OptionApply::kRestart;
}
[[nodiscard]] constexpr std::string_view name_of(OptionApply apply) noexcept {
  return is_live(apply) ? "live" : "restart";
}

}  // namespace weir::inline v0::config
