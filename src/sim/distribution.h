#pragma once

#include <cstdint>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"

namespace weir::inline v0::sim {

enum class DistributionKind : std::uint8_t {
  kConstant,
  kUniform,
  kExponential,
  kLognormal,
  kBimodal,
  kPareto,
  kEmpirical,
};

/// A random duration: how long something takes.
///
///   constant     always `a`
///   uniform      between a and b
///   exponential  mean a
///   lognormal    median a, shape = sigma of the logarithm
///   bimodal      a, or b with probability `share`
///   pareto       at least a, tail exponent `shape`, cut at b
///   empirical    one of `values`, each as likely; or, with `shares`, the value at that share of
///                all, geometric interpolation between: what a dashboard shows as p50, p90, p99
///
/// A draw is × straggler_factor with probability straggler_share, whatever the kind.
///
/// Promises: replayable (see replay_math.h); never negative. Thread-safety: const is shareable.
/// Cost: up to about 30 ns a draw; no allocation.
struct Distribution {
  DistributionKind kind = DistributionKind::kConstant;
  Duration a{};
  Duration b{};
  double share = 0;
  double shape = 1;
  double straggler_share = 0;
  double straggler_factor = 1;
  std::vector<Duration> values{};
  std::vector<double> shares{};  // ascending from 0 to 1, one per value, or empty

  [[nodiscard]] static Distribution constant(Duration value) {
    Distribution d;
    d.a = value;
    return d;
  }
  [[nodiscard]] static Distribution exponential(Duration mean) {
    Distribution d;
    d.kind = DistributionKind::kExponential;
    d.a = mean;
    return d;
  }

  [[nodiscard]] bool is_zero() const noexcept {
    return kind == DistributionKind::kConstant && a.count() == 0;
  }
  [[nodiscard]] Duration draw(Rng& rng) const;
  /// The mean, by formula where there is a short one, else by a fixed sample.
  [[nodiscard]] Duration mean() const;
  /// The value below which a share q lies; computed likewise.
  [[nodiscard]] Duration quantile(double q) const;

 private:
  [[nodiscard]] Duration draw_usual(Rng& rng) const;
  [[nodiscard]] Duration mean_usual() const;
};

/// One draw of the unit exponential distribution: the time to the next event of a Poisson process
/// of rate one.
[[nodiscard]] double draw_unit_exponential(Rng& rng) noexcept;

}  // namespace weir::inline v0::sim
