#pragma once

#include <cstdint>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/time.h"

namespace weir::inline v0::control {

/// When a second attempt of a read may be sent, and how many.
struct HedgeConfig {
  bool enabled = true;
  double budget_pct = 0.10;               // tokens each request deposits
  std::uint32_t max_budget_tokens = 100;  // most tokens held; the budget starts full
  Duration min_delay = std::chrono::milliseconds(1);
  Duration max_delay = std::chrono::milliseconds(50);
  Duration default_delay = std::chrono::milliseconds(5);  // while nothing is known of a peer
  double alpha = 0.1;                                     // weight of a new sample in the average
  double quantile = 0.95;                                 // of the peer's latency: the delay
  Duration window = std::chrono::seconds(30);             // that the quantile looks back

  bool operator==(const HedgeConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors HedgeConfig::validate() const {
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  constexpr Duration kShortest = milliseconds(0);
  constexpr Duration kLongest = minutes(1);
  ConfigErrors errors;
  check_range(errors, "budget_pct", budget_pct, 0.0, 1.0);
  check_range(errors, "max_budget_tokens", max_budget_tokens, 0U, 1000000U);
  check_range(errors, "min_delay_ms", min_delay, kShortest, kLongest);
  check_range(errors, "max_delay_ms", max_delay, kShortest, kLongest);
  check_range(errors, "default_delay_ms", default_delay, kShortest, kLongest);
  if (max_delay < min_delay) {
    check_range(errors, "max_delay_ms", max_delay, min_delay, kLongest);
  }
  check_range(errors, "alpha", alpha, 0.001, 1.0);
  check_range(errors, "quantile", quantile, 0.5, 0.999);
  check_range(errors, "window_ms", window, Duration(milliseconds(1000)), Duration(minutes(60)));
  return errors;
}

}  // namespace weir::inline v0::control

namespace weir::inline v0 {
using control::HedgeConfig;
}  // namespace weir::inline v0
