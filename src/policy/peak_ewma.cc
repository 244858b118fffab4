#include "policy/peak_ewma.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

constexpr double kUnknownNs = 1e6;
constexpr double kIdleMedians = 0.5;  // the decay of an unused score stops here

double ns_of(Duration d) noexcept {
  return static_cast<double>(d.count());
}

/// e^(-x) for x >= 0 from + × ÷ only: four times the third-order series at x / 4. Falls from 1 to 0
/// without a step, 3 % too high at x = 3.
double decay_factor(double x) noexcept {
  const double y = x / 4;
  const double quarter = 1 / (1 + y * (1 + y * (0.5 + y / 6)));
  const double half = quarter * quarter;
  return half * half;
}

double weight_of_old(const PeakEwma& score, const PeakEwmaRules& rules, TimePoint now) noexcept {
  const double elapsed = std::max(ns_of(now - score.updated_at), 0.0);
  return decay_factor(elapsed / std::max(ns_of(rules.decay), 1.0));
}

}  // namespace

PeakEwma with_sample(const PeakEwma& old, const LatencySample& sample, const CohortLatency& cohort,
                     const PeakEwmaRules& rules, TimePoint now) noexcept {
  double x = std::max(ns_of(sample.latency), 1.0);
  if (cohort.median > Duration::zero()) x = std::min(x, rules.clip_medians * ns_of(cohort.median));
  if (sample.error) x = std::max(x, ns_of(cohort.p99));
  const TimePoint updated_at = std::max(old.updated_at, now);
  if (sample.censored) {
    if (sample.beaten && old.ns > 0 && cohort.median > Duration::zero()) {
      const double w = weight_of_old(old, rules, now);
      const double slow = rules.clip_medians * ns_of(cohort.median);
      return {.ns = std::max(old.ns * w + slow * (1 - w), x), .updated_at = updated_at};
    }
    const bool news = x > projected_ns(old, cohort, rules, now);
    return news ? PeakEwma{.ns = x, .updated_at = updated_at} : old;
  }
  if (old.ns <= 0 || x >= old.ns) return {.ns = x, .updated_at = updated_at};
  const double w = weight_of_old(old, rules, now);
  return {.ns = old.ns * w + x * (1 - w), .updated_at = updated_at};
}

double projected_ns(const PeakEwma& score, const CohortLatency& cohort, const PeakEwmaRules& rules,
                    TimePoint now) noexcept {
  const double median = ns_of(cohort.median);
  if (score.ns <= 0) return median > 0 ? median : kUnknownNs;
  const double floor = std::min(score.ns, std::max(median * kIdleMedians, 1.0));
  return std::max(score.ns * weight_of_old(score, rules, now), floor);
}

PeakEwma score_on_return(const CohortLatency& cohort, const PeakEwmaRules& rules,
                         TimePoint now) noexcept {
  return {.ns = rules.return_medians * ns_of(cohort.median), .updated_at = now};
}

}  // namespace weir::inline v0::inline policy
