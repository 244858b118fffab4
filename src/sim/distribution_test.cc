#include "distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "latency_histogram.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;

LatencyHistogram draw_many(const Distribution& d, int count = 200000) {
  LatencyHistogram h;
  Rng rng(11);
  for (int i = 0; i < count; ++i) h.add(d.draw(rng));
  return h;
}

Distribution make(DistributionKind kind, Duration a, Duration b = {}) {
  Distribution d;
  d.kind = kind;
  d.a = a;
  d.b = b;
  return d;
}

double ms(Duration d) {
  return to_millis(d);
}

TEST(Distribution, ConstantIsConstant) {
  const Distribution d = Distribution::constant(milliseconds(7));
  Rng rng(1);
  EXPECT_EQ(d.draw(rng), Duration(milliseconds(7)));
  EXPECT_EQ(d.mean(), Duration(milliseconds(7)));
}

TEST(Distribution, ExponentialHasItsMeanAndItsMedian) {
  const LatencyHistogram h = draw_many(Distribution::exponential(milliseconds(10)));
  EXPECT_NEAR(ms(h.mean()), 10, 0.1);
  EXPECT_NEAR(ms(h.quantile(0.5)), 6.931, 0.15);
  EXPECT_NEAR(ms(h.quantile(0.99)), 46.05, 1.2);
  EXPECT_NEAR(ms(Distribution::exponential(milliseconds(10)).quantile(0.99)), 46.05, 0.01);
}

// Compares two million draws with e^-x at every tenth, far into the tail beyond the lowest layer.
TEST(Distribution, ExponentialFollowsItsCurveEverywhere) {
  constexpr int kDraws = 2'000'000;
  constexpr std::size_t kCells = 100;
  std::array<int, kCells + 1> above{};
  Rng rng(5);
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw_unit_exponential(rng);
    ASSERT_GE(x, 0);
    const auto cell = std::min(kCells, static_cast<std::size_t>(x * 10));
    ++above[cell];
  }
  double beyond = 0;
  for (std::size_t cell = kCells + 1; cell-- > 0;) {
    beyond += above[cell];
    const double expected = kDraws * std::exp(-static_cast<double>(cell) / 10);
    EXPECT_NEAR(beyond, expected, 4.5 * std::sqrt(expected)) << "beyond " << cell << "/10";
  }
}

TEST(Distribution, UniformStaysBetweenItsEnds) {
  const Distribution d = make(DistributionKind::kUniform, milliseconds(5), milliseconds(15));
  const LatencyHistogram h = draw_many(d);
  EXPECT_NEAR(ms(h.mean()), 10, 0.1);
  EXPECT_LE(ms(h.max()), 15);
  EXPECT_GE(ms(h.quantile(0)), 4.9);
}

TEST(Distribution, LognormalHasItsMedianAndItsMean) {
  Distribution d = make(DistributionKind::kLognormal, milliseconds(10));
  d.shape = 0.8;
  const LatencyHistogram h = draw_many(d);
  EXPECT_NEAR(ms(h.quantile(0.5)), 10, 0.2);
  EXPECT_NEAR(ms(h.mean()), ms(d.mean()), 0.15);
  EXPECT_NEAR(ms(d.mean()), 10 * std::exp(0.32), 0.01);
}

TEST(Distribution, BimodalGivesTheSlowOneItsShare) {
  Distribution d = make(DistributionKind::kBimodal, milliseconds(5), milliseconds(500));
  d.share = 0.03;
  const LatencyHistogram h = draw_many(d);
  EXPECT_NEAR(ms(h.mean()), ms(d.mean()), 0.5);
  EXPECT_NEAR(ms(h.quantile(0.96)), 5, 0.1);
  EXPECT_GT(ms(h.quantile(0.98)), 400);
}

TEST(Distribution, ParetoStartsAtItsMinimumAndIsCut) {
  Distribution d = make(DistributionKind::kPareto, milliseconds(4), milliseconds(1000));
  d.shape = 1.5;
  const LatencyHistogram h = draw_many(d);
  EXPECT_GE(ms(h.quantile(0)), 3.9);
  EXPECT_LE(ms(h.max()), 1000);
  EXPECT_NEAR(ms(h.quantile(0.5)), 4 * std::pow(2.0, 1 / 1.5), 0.2);
}

TEST(Distribution, EmpiricalValuesAreEquallyLikely) {
  Distribution d = make(DistributionKind::kEmpirical, {});
  d.values = {milliseconds(1), milliseconds(2), milliseconds(3), milliseconds(10)};
  EXPECT_NEAR(ms(draw_many(d).mean()), 4, 0.05);
}

TEST(Distribution, EmpiricalSharesReproduceADashboard) {
  Distribution d = make(DistributionKind::kEmpirical, {});
  d.values = {milliseconds(2), milliseconds(10), milliseconds(30), milliseconds(120),
              milliseconds(400)};
  d.shares = {0, 0.5, 0.9, 0.99, 1};
  const LatencyHistogram h = draw_many(d);
  EXPECT_NEAR(ms(h.quantile(0.5)), 10, 0.3);
  EXPECT_NEAR(ms(h.quantile(0.9)), 30, 0.8);
  EXPECT_NEAR(ms(h.quantile(0.99)), 120, 5);
  EXPECT_LE(ms(h.max()), 400);
}

TEST(Distribution, StragglersTakeAMultiple) {
  Distribution d = Distribution::constant(milliseconds(2));
  d.straggler_share = 0.05;
  d.straggler_factor = 10;
  const LatencyHistogram h = draw_many(d);
  EXPECT_EQ(h.above(milliseconds(19)), h.above(milliseconds(3)));
  EXPECT_NEAR(ms(h.mean()), 2.9, 0.05);
  EXPECT_NEAR(ms(d.mean()), 2.9, 0.001);
  EXPECT_NEAR(ms(d.quantile(0.9)), 2, 0.1);
  EXPECT_NEAR(ms(d.quantile(0.99)), 20, 1);
}

TEST(Distribution, EqualSeedsDrawEqualTimes) {
  Distribution d = make(DistributionKind::kLognormal, milliseconds(10));
  d.shape = 1.1;
  Rng a(5);
  Rng b(5);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(d.draw(a), d.draw(b));
}

}  // namespace
}  // namespace weir::sim
