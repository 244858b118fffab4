#pragma once

#include <cstdint>

#include "weir/base/config_error.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// When a slow read is sent to a second endpoint, and how often. `budget_pct` and
/// `max_budget_tokens` bound hedges and retries together (the redundancy budget).
struct HedgeConfig {
  bool enabled = true;
  double budget_pct = 0.10;               // redundant attempts per request
  std::uint32_t max_budget_tokens = 100;  // the burst
  Duration min_delay = std::chrono::milliseconds(1);
  Duration max_delay = std::chrono::milliseconds(50);
  Duration default_delay = std::chrono::milliseconds(5);  // while too little is known
  double alpha = 0.1;      // weight of a new latency in mean and variance
  double quantile = 0.95;  // of the latencies of a window, once it holds enough of them
  Duration window = std::chrono::seconds(30);
  /// One in this many primaries that lost to a hedge is not cancelled, to measure how much time the
  /// hedge saved; 0: none.
  std::uint32_t losers_per_finish = 64;

  bool operator==(const HedgeConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

}  // namespace weir::inline v0::inline policy
