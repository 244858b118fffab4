#include "weir/experimental/metrics/histogram.h"

#include <array>
#include <barrier>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::metrics {
namespace {

constexpr std::array<double, 3> kBounds = {1, 10, 100};

TEST(Histogram, ABoundBelongsToItsOwnBucket) {
  Histogram histogram(kBounds);
  for (const double v : {-5.0, 1.0, 1.0001, 10.0, 99.0, 100.0, 100.5}) histogram.observe(v);
  const HistogramSnapshot seen = histogram.snapshot();
  EXPECT_EQ(seen.counts[0], 2U);
  EXPECT_EQ(seen.counts[1], 2U);
  EXPECT_EQ(seen.counts[2], 2U);
  EXPECT_EQ(seen.counts[3], 1U);
  EXPECT_EQ(seen.count(), 7U);
  EXPECT_DOUBLE_EQ(seen.sum, 306.5001);
}

TEST(Histogram, IgnoresNaNAndTakesInfinity) {
  Histogram histogram(kBounds);
  histogram.observe(std::nan(""));
  EXPECT_EQ(histogram.snapshot().count(), 0U);
  histogram.observe(std::numeric_limits<double>::infinity());
  EXPECT_EQ(histogram.snapshot().counts[3], 1U);
}

TEST(Histogram, MergeAddsBucketsAndSums) {
  Histogram a(kBounds);
  Histogram b(kBounds);
  a.observe(5);
  b.observe(5);
  b.observe(500);
  HistogramSnapshot both = a.snapshot();
  both.merge(b.snapshot());
  EXPECT_EQ(both.counts[1], 2U);
  EXPECT_EQ(both.counts[3], 1U);
  EXPECT_DOUBLE_EQ(both.sum, 510);
  EXPECT_EQ(both.view().bounds.size(), 3U);
  EXPECT_EQ(both.view().counts.size(), 4U);
}

TEST(Histogram, LosesNothingUnderManyThreads) {
  Histogram histogram(kBounds);
  constexpr int kThreads = 4;
  constexpr int kEach = 20000;
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < kEach; ++i) histogram.observe(i % 4 == 0 ? 1 : 50);
    });
  }
  threads.clear();
  const HistogramSnapshot seen = histogram.snapshot();
  EXPECT_EQ(seen.counts[0], kThreads * kEach / 4U);
  EXPECT_EQ(seen.counts[2], kThreads * kEach * 3U / 4U);
  EXPECT_DOUBLE_EQ(seen.sum, kThreads * (kEach / 4.0 + kEach * 0.75 * 50));
}

}  // namespace
}  // namespace weir::metrics
