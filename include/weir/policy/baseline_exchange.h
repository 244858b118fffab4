#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

// What the gateways before one service tell each other, so that each knows the latency of the
// service without a queue. Plain values: the owner carries them, about once a second.
// All times are of one clock, which the gateways have in common.

/// The latencies of a service without a queue, as one gateway measured them.
struct ServiceBaseline {
  Duration p10{};
  Duration p50{};
  Duration p90{};
  Duration avg{};
  TimePoint measured_at{};

  bool operator==(const ServiceBaseline&) const = default;
};

/// What a limiter tells the others.
struct BaselineReport {
  /// The last one that a probe has proved.
  std::optional<ServiceBaseline> measured{};
  bool full = false;        // its limit is full
  std::uint32_t limit = 0;  // in force, or before the probe that goes on
  /// It doubts the shared baseline, or there is none: it wants a probe before the next instant.
  bool wants_probe = false;

  bool operator==(const BaselineReport&) const = default;
};

/// What a limiter hears from the others.
struct BaselineNews {
  TimePoint at{};
  std::optional<ServiceBaseline> shared{};
  TimePoint probe_at{};    // all gateways whose limit is full probe then
  std::uint32_t full = 0;  // gateways whose limit is full
  double limit_mean = 0;   // of those
};

}  // namespace weir::inline v0::inline policy
