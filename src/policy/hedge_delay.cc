#include "policy/hedge_delay.h"

#include <algorithm>
#include <cmath>

namespace weir::inline v0::inline policy {
namespace {

constexpr double kLongestNs = 1e15;  // about 11 days; squared, it is still exact enough
constexpr double kSlowUntil = 0.9;   // of max_delay

/// std::clamp aborts, or worse, if the bounds are crossed: a config that was not validated.
Duration clamp_delay(Duration delay, const HedgeConfig& config) noexcept {
  return std::max(std::min(delay, config.max_delay), std::min(config.min_delay, config.max_delay));
}

template <class Value>
Duration lower_median(std::span<CohortMember> members, Value value) noexcept {
  const auto middle = members.begin() + static_cast<std::ptrdiff_t>((members.size() - 1) / 2);
  std::nth_element(
      members.begin(), middle, members.end(),
      [value](const CohortMember& a, const CohortMember& b) { return a.*value < b.*value; });
  return *middle.*value;
}

}  // namespace

LatencyMean with_latency(const LatencyMean& old, Duration latency, double alpha) noexcept {
  const double x = std::clamp(static_cast<double>(latency.count()), 1.0, kLongestNs);
  if (old.ns <= 0) return {.ns = x, .variance = 0};
  const double difference = x - old.ns;
  return {.ns = old.ns + alpha * difference,
          .variance = (1 - alpha) * (old.variance + alpha * difference * difference)};
}

Duration mean_and_two_deviations(const LatencyMean& mean) noexcept {
  const double ns = mean.ns + 2 * std::sqrt(std::max(mean.variance, 0.0));
  return Duration(static_cast<std::int64_t>(std::clamp(ns, 0.0, 3 * kLongestNs)));
}

HedgeDelay hedge_delay(const DelayEvidence& evidence, const HedgeConfig& config) noexcept {
  if (evidence.samples >= kQuantileSamplesMin) {
    return {clamp_delay(evidence.quantile, config), DelayBasis::kQuantile};
  }
  if (evidence.samples >= kMeanSamplesMin) {
    return {clamp_delay(mean_and_two_deviations(evidence.mean), config), DelayBasis::kMean};
  }
  return {clamp_delay(config.default_delay, config), DelayBasis::kDefault};
}

HedgeCohort judge_cohort(std::span<CohortMember> members, const HedgeCohort& before,
                         const HedgeConfig& config) noexcept {
  if (members.empty()) return {};
  HedgeCohort cohort;
  cohort.delay = lower_median(members, &CohortMember::delay);
  cohort.median = lower_median(members, &CohortMember::median);
  const auto until = Duration(
      static_cast<std::int64_t>(kSlowUntil * static_cast<double>(config.max_delay.count())));
  cohort.slow = cohort.median > (before.slow ? until : config.max_delay);
  return cohort;
}

HedgeDelay capped_by(const HedgeCohort& cohort, const HedgeDelay& own,
                     const HedgeConfig& config) noexcept {
  const bool known = cohort.delay > Duration::zero();
  const bool use_cohort = known && (own.basis == DelayBasis::kDefault || cohort.delay < own.delay);
  if (!use_cohort) return own;
  return {clamp_delay(cohort.delay, config), DelayBasis::kCohort};
}

}  // namespace weir::inline v0::inline policy
