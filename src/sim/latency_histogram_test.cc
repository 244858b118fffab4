#include "latency_histogram.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::sim {
namespace {

TEST(LatencyHistogram, EmptyIsZero) {
  LatencyHistogram h;
  EXPECT_EQ(h.quantile(0.99).count(), 0);
  EXPECT_EQ(h.mean().count(), 0);
  h.clear();
  EXPECT_EQ(h.count(), 0U);
}

TEST(LatencyHistogram, QuantilesAreWithinTwoPercentOfTheSortedTruth) {
  LatencyHistogram h;
  Rng rng(3);
  std::vector<std::int64_t> all;
  for (int i = 0; i < 50000; ++i) {
    const std::int64_t ns = std::int64_t{1} << rng.between(std::int64_t{4}, std::int64_t{34});
    const std::int64_t value = ns + rng.between(std::int64_t{0}, ns);
    all.push_back(value);
    h.add(Duration(value));
  }
  std::sort(all.begin(), all.end());
  for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto truth = static_cast<double>(all[static_cast<std::size_t>(q * 50000)]);
    EXPECT_NEAR(static_cast<double>(h.quantile(q).count()) / truth, 1.0, 0.02) << q;
  }
  EXPECT_EQ(h.max().count(), all.back());
}

TEST(LatencyHistogram, MergeIsTheSameAsAddingBothAndClearForgets) {
  LatencyHistogram a;
  LatencyHistogram b;
  LatencyHistogram both;
  for (int i = 1; i <= 1000; ++i) {
    (i % 2 == 0 ? a : b).add(Duration(i * 1000));
    both.add(Duration(i * 1000));
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.mean(), both.mean());
  for (const double q : {0.1, 0.5, 0.99}) EXPECT_EQ(a.quantile(q), both.quantile(q));
  a.clear();
  EXPECT_EQ(a.quantile(0.5).count(), 0);
  a.add(Duration(5));
  EXPECT_EQ(a.quantile(1.0).count(), 5);
}

TEST(LatencyHistogram, AnythingLongerThanAnHourStillCounts) {
  LatencyHistogram h;
  h.add(std::chrono::hours(100));
  h.add(Duration(-5));
  EXPECT_EQ(h.count(), 2U);
  EXPECT_EQ(h.max(), Duration(std::chrono::hours(100)));
}

}  // namespace
}  // namespace weir::sim
