#include "policy/hedge_delay.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

LatencyMean mean_of(const std::vector<Duration>& latencies, double alpha = 0.1) {
  LatencyMean mean;
  for (const Duration latency : latencies) mean = with_latency(mean, latency, alpha);
  return mean;
}

TEST(LatencyMean, FollowsTheFormulaStepByStep) {
  // By hand, alpha = 0.1: 2, 12 ms: d = 10, mean 3, variance 0.9 × 0.1 × 100 = 9; then 3 ms: d = 0,
  // variance 8.1.
  LatencyMean mean = mean_of({milliseconds(2), milliseconds(12)});
  EXPECT_NEAR(mean.ns, 3e6, 1);
  EXPECT_NEAR(mean.variance, 9e12, 1e3);
  mean = with_latency(mean, milliseconds(3), 0.1);
  EXPECT_NEAR(mean.ns, 3e6, 1);
  EXPECT_NEAR(mean.variance, 8.1e12, 1e3);
  EXPECT_NEAR(static_cast<double>(mean_and_two_deviations(mean).count()),
              3e6 + 2e6 * std::sqrt(8.1), 10);
}

TEST(LatencyMean, EqualLatenciesHaveNoVariance) {  // edge case 11
  const LatencyMean mean = mean_of(std::vector<Duration>(50, milliseconds(2)));
  EXPECT_EQ(mean.variance, 0);
  EXPECT_EQ(mean_and_two_deviations(mean), milliseconds(2));
}

TEST(LatencyMean, KeepsMicrosecondsThatMillisecondsWouldCutOff) {
  const LatencyMean mean = mean_of(std::vector<Duration>(20, microseconds(300)));
  EXPECT_EQ(mean_and_two_deviations(mean), microseconds(300));
}

TEST(LatencyMean, StaysFiniteForExtremeLatencies) {
  Rng rng(1);
  LatencyMean mean;
  for (int i = 0; i < 10'000; ++i) {
    const Duration odd[] = {Duration::max(), Duration::min(), Duration(0), Duration(1), seconds(1)};
    mean = with_latency(mean, odd[rng.below(5)], 0.001 + 0.999 * rng.unit());
    ASSERT_TRUE(std::isfinite(mean.ns) && std::isfinite(mean.variance));
    ASSERT_GE(mean.ns, 0);
    ASSERT_GE(mean.variance, 0);
    ASSERT_GE(mean_and_two_deviations(mean), Duration(0));
  }
}

TEST(HedgeDelay, IsTheDefaultBelowTenSamples) {  // edge case 12
  const HedgeConfig config;
  const LatencyMean slow{.ns = 40e6, .variance = 0};
  for (std::uint32_t n = 0; n < 10; ++n) {
    EXPECT_EQ(hedge_delay({.samples = n, .mean = slow}, config),
              (HedgeDelay{config.default_delay, DelayBasis::kDefault}));
  }
  EXPECT_EQ(hedge_delay({.samples = 10, .mean = slow}, config),
            (HedgeDelay{milliseconds(40), DelayBasis::kMean}));
}

TEST(HedgeDelay, IsTheQuantileFromAHundredSamplesOn) {
  const HedgeConfig config;
  const LatencyMean mean{.ns = 40e6, .variance = 0};
  EXPECT_EQ(hedge_delay({99, mean, milliseconds(7)}, config).delay, milliseconds(40));
  EXPECT_EQ(hedge_delay({100, mean, milliseconds(7)}, config),
            (HedgeDelay{milliseconds(7), DelayBasis::kQuantile}));
}

TEST(HedgeDelay, IsClampedWhateverTheEvidence) {
  const HedgeConfig config;
  EXPECT_EQ(hedge_delay({200, {}, microseconds(10)}, config).delay, config.min_delay);
  EXPECT_EQ(hedge_delay({200, {}, seconds(3)}, config).delay, config.max_delay);
  EXPECT_EQ(hedge_delay({20, {.ns = 1e9, .variance = 1e18}, {}}, config).delay, config.max_delay);
  HedgeConfig crossed;  // never validated
  crossed.min_delay = milliseconds(80);
  EXPECT_LE(hedge_delay({200, {}, milliseconds(60)}, crossed).delay, crossed.max_delay);
}

std::vector<CohortMember> cohort_with(std::initializer_list<int> delays_ms) {
  std::vector<CohortMember> result;
  for (const int ms : delays_ms) result.push_back({milliseconds(ms), milliseconds(ms)});
  return result;
}

TEST(HedgeCohort, ASickEndpointDoesNotRaiseItsOwnDelay) {
  const HedgeConfig config;
  for (const auto& delays :
       {cohort_with({2, 2, 50}), cohort_with({50, 2}), cohort_with({50, 2, 50, 2})}) {
    auto cohort_members = delays;
    const HedgeCohort cohort = judge_cohort(cohort_members, {}, config);
    EXPECT_EQ(cohort.delay, milliseconds(2));
    EXPECT_FALSE(cohort.slow);
    EXPECT_EQ(capped_by(cohort, {milliseconds(50), DelayBasis::kQuantile}, config),
              (HedgeDelay{milliseconds(2), DelayBasis::kCohort}));
  }
}

TEST(HedgeCohort, DoesNotRaiseADelayThatIsKnown) {
  const HedgeConfig config;
  const HedgeDelay own{milliseconds(3), DelayBasis::kMean};
  EXPECT_EQ(capped_by({.delay = milliseconds(20)}, own, config), own);
  EXPECT_EQ(capped_by({}, own, config), own);
}

TEST(HedgeCohort, StandsInForAnEndpointThatIsNotKnown) {
  const HedgeConfig config;
  const HedgeDelay unknown{config.default_delay, DelayBasis::kDefault};
  EXPECT_EQ(capped_by({.delay = milliseconds(20)}, unknown, config),
            (HedgeDelay{milliseconds(20), DelayBasis::kCohort}));
  EXPECT_EQ(capped_by({}, unknown, config), unknown);
}

TEST(HedgeCohort, IsSlowAboveTheLongestDelayAndStaysSoJustBelow) {
  const HedgeConfig config;  // 50 ms
  const auto judged = [&](int ms, bool was_slow) {
    auto one = cohort_with({ms});
    return judge_cohort(one, {.slow = was_slow}, config).slow;
  };
  EXPECT_FALSE(judged(50, false));
  EXPECT_TRUE(judged(51, false));
  EXPECT_TRUE(judged(46, true));
  EXPECT_FALSE(judged(45, true));
  EXPECT_FALSE(judge_cohort({}, {.slow = true}, config).slow);  // nothing is known any more
}

TEST(HedgeCohort, TheMedianIsHeldByHalfOfTheMembersAndTheCapNeverRaises) {
  const HedgeConfig config;
  Rng rng(7);
  for (int run = 0; run < 2000; ++run) {
    std::vector<CohortMember> all(1 + rng.below(12));
    for (CohortMember& m : all) {
      m = {rng.between(Duration(milliseconds(1)), Duration(milliseconds(50))),
           rng.between(Duration(1), Duration(milliseconds(90)))};
    }
    const HedgeCohort cohort = judge_cohort(all, {}, config);
    const auto at_most = std::count_if(
        all.begin(), all.end(), [&](const CohortMember& m) { return m.delay <= cohort.delay; });
    ASSERT_GE(2 * static_cast<std::size_t>(at_most), all.size());
    ASSERT_LT(
        static_cast<std::size_t>(std::count_if(
            all.begin(), all.end(), [&](const CohortMember& m) { return m.delay < cohort.delay; })),
        (all.size() + 1) / 2);
    const HedgeDelay own{all.front().delay, DelayBasis::kQuantile};
    ASSERT_LE(capped_by(cohort, own, config).delay, own.delay);
    ASSERT_GE(capped_by(cohort, own, config).delay, config.min_delay);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
