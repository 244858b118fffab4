#pragma once

#include <algorithm>

#include "weir/policy/limit_policy.h"

namespace weir::inline v0::inline policy {

/// The latencies of one window in four numbers, nanoseconds.
struct LatencyShape {
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
  double avg = 0;

  [[nodiscard]] static LatencyShape of(const LimitSample& window) noexcept {
    return {static_cast<double>(window.latency_p10.count()),
            static_cast<double>(window.latency_p50.count()),
            static_cast<double>(window.latency_p90.count()),
            static_cast<double>(window.latency_avg.count())};
  }

  /// Moves this by a share of its distance to another.
  void approach(const LatencyShape& other, double share) noexcept {
    p10 += (other.p10 - p10) * share;
    p50 += (other.p50 - p50) * share;
    p90 += (other.p90 - p90) * share;
    avg += (other.avg - avg) * share;
  }
};

[[nodiscard]] constexpr double median_of(double a, double b, double c) noexcept {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

/// Whether all requests take equally long. Then they wait in steps of their own length: a queue of
/// a third of the workers delays a third of the requests by a whole step, and the others not at
/// all.
[[nodiscard]] constexpr bool equally_long(const LatencyShape& shape) noexcept {
  return std::max(shape.p90, shape.avg) < 1.1 * shape.p10;
}

/// The wait that a queue added to every request: the median of what the percentiles grew by, but at
/// most their weighted mean. Never negative. A change of only one percentile (a few slow calls,
/// another mix) is not a queue. Of requests that take equally long the percentiles jump from one
/// step to the next, and the average shows the wait: it is used as far as the slow ones explain it.
[[nodiscard]] constexpr double added_wait(const LatencyShape& now,
                                          const LatencyShape& baseline) noexcept {
  const double p10 = now.p10 - baseline.p10;
  const double p50 = now.p50 - baseline.p50;
  const double p90 = now.p90 - baseline.p90;
  if (equally_long(baseline)) return std::max(0.0, std::min(now.avg - baseline.avg, p90));
  return std::max(0.0, std::min(median_of(p10, p50, p90), (p10 + 2 * p50 + p90) / 4));
}

/// The slowdown as a factor: the median over the percentiles.
[[nodiscard]] constexpr double slowdown(const LatencyShape& now,
                                        const LatencyShape& before) noexcept {
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1.0; };
  return median_of(ratio(now.p10, before.p10), ratio(now.p50, before.p50),
                   ratio(now.p90, before.p90));
}

}  // namespace weir::inline v0::inline policy
