#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

// What the rules of AutoLimit (auto_limit.cc) and its tests of the service (auto_limit_probe.cc)
// have in common.

inline constexpr double kStepDown = 0.7;  // factor on the limit, per window and per step of a probe
inline constexpr double kStepDownDeep = 0.5;  // the same while latency is mostly queue
inline constexpr double kConfirmed = 0.1;  // a probe within this share of the baseline confirms it
inline constexpr double kDoubt = 0.4;      // tolerated, of 1, in the slopes that show no queue
inline constexpr std::uint32_t kFloorPatienceMin = 2;  // windows at the floor before a test upwards
inline constexpr Duration kProbeMin = std::chrono::seconds(30);
inline constexpr Duration kProbeMax = std::chrono::seconds(60);

/// The queue that is accepted for this many busy requests.
inline double slack_of(double busy) noexcept {
  return 1 + std::sqrt(std::max(busy, 1.0)) + busy / 10;
}

}  // namespace weir::inline v0::inline policy
