#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/policy/hedge_config.h"

namespace weir::inline v0::inline policy {

inline constexpr std::uint32_t kMeanSamplesMin = 10;       // below it: the default delay
inline constexpr std::uint32_t kQuantileSamplesMin = 100;  // from it on: the quantile

/// Mean and variance of latencies with exponential weights.
struct LatencyMean {
  double ns = 0;  // 0: no latency yet
  double variance = 0;
  bool operator==(const LatencyMean&) const = default;
};

/// With d = x - mean:  mean + alpha × d,  (1 - alpha) × (variance + alpha × d²). The first latency
/// is the mean. Promises: both finite and not negative. Thread-safety: pure. Cost: O(1).
[[nodiscard]] LatencyMean with_latency(const LatencyMean& old, Duration latency,
                                       double alpha) noexcept;
/// mean + 2 × standard deviation.
[[nodiscard]] Duration mean_and_two_deviations(const LatencyMean& mean) noexcept;

/// What the latencies of one endpoint in the last window say.
struct DelayEvidence {
  std::uint32_t samples = 0;  // in the window
  LatencyMean mean{};
  Duration quantile{};  // used from kQuantileSamplesMin on
};

/// What a hedge delay is based on; a label of metrics.
enum class DelayBasis : std::uint8_t {
  kDefault,   // too few samples
  kMean,      // mean and deviation
  kQuantile,  // the window's quantile
  kCohort,    // the endpoint's own delay is unknown or above that of its cohort
};
WEIR_ENUM_NAMES(DelayBasis, "default", "mean", "quantile", "cohort")

struct HedgeDelay {
  Duration delay{};
  DelayBasis basis = DelayBasis::kDefault;
  bool operator==(const HedgeDelay&) const = default;
};

/// How long to wait for an endpoint before a read is sent to another one:
///   samples >= 100  the quantile
///   samples >= 10   mean + 2 × deviation (a quantile of so few would be one of the largest)
///   otherwise       default_delay
/// clamped to [min_delay, max_delay].
///
/// Promises: within the clamp, whatever the evidence is. Other endpoints have no influence.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] HedgeDelay hedge_delay(const DelayEvidence& evidence,
                                     const HedgeConfig& config) noexcept;

/// One endpoint, as a member of the cohort: only those with enough samples are given.
struct CohortMember {
  Duration delay{};  // hedge_delay()
  Duration median{};
};

/// All endpoints of an upstream together.
struct HedgeCohort {
  Duration delay{};   // the lower median of the delays; zero: unknown
  Duration median{};  // the lower median of the medians; zero: unknown
  bool slow = false;  // the median is above max_delay: no hedging
  bool operator==(const HedgeCohort&) const = default;
};

/// The lower median cannot be raised by endpoints that are fewer than half. So one sick endpoint of
/// two or three does not raise its own delay, nor switch hedging off.
///
/// `slow`: the usual answer takes longer than max_delay. Every read would be hedged, so none is.
/// It begins above max_delay and ends below 0.9 × max_delay, so that it does not flap.
///
/// `members` is reordered. Promises: total. Thread-safety: pure. Cost: O(members).
[[nodiscard]] HedgeCohort judge_cohort(std::span<CohortMember> members, const HedgeCohort& before,
                                       const HedgeConfig& config) noexcept;

/// The delay that a call uses: the endpoint's own, but not more than the cohort's; the cohort's if
/// the own one is unknown. Promises: never above `own` unless that is the default; within the
/// clamp.
[[nodiscard]] HedgeDelay capped_by(const HedgeCohort& cohort, const HedgeDelay& own,
                                   const HedgeConfig& config) noexcept;

}  // namespace weir::inline v0::inline policy
