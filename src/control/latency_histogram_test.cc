#include "control/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline control {
namespace {

using Counts = std::array<std::uint32_t, LatencyBuckets::kCount>;

TEST(LatencyBuckets, AValueIsKnownWithinFourPercentFromAMicrosecondToTwoMinutes) {
  Rng rng(11);
  for (int i = 0; i < 100'000; ++i) {
    // Uniform in the exponent, so that every octave is covered.
    const double ns = std::exp2(10.0 + 26.9 * rng.unit());
    const Duration latency(static_cast<std::int64_t>(ns));
    const Duration known = LatencyBuckets::value(LatencyBuckets::index(latency));
    const double error = std::abs(to_seconds(known) / to_seconds(latency) - 1.0);
    ASSERT_LE(error, 0.04) << latency.count();
  }
}

TEST(LatencyBuckets, BucketsAreInOrderAndEachHoldsItsOwnMiddle) {
  Duration below{0};
  for (std::size_t i = 0; i < LatencyBuckets::kCount; ++i) {
    ASSERT_EQ(LatencyBuckets::index(LatencyBuckets::value(i)), i);
    ASSERT_GT(LatencyBuckets::value(i), below);
    below = LatencyBuckets::value(i);
  }
}

TEST(LatencyBuckets, WhatLiesOutsideGoesToTheEnds) {
  EXPECT_EQ(LatencyBuckets::index(Duration(-5)), 0U);
  EXPECT_EQ(LatencyBuckets::index(Duration(0)), 0U);
  EXPECT_EQ(LatencyBuckets::index(Duration(1)), 0U);
  EXPECT_EQ(LatencyBuckets::index(std::chrono::hours(1)), LatencyBuckets::kCount - 1);
  EXPECT_EQ(LatencyBuckets::index(Duration::max()), LatencyBuckets::kCount - 1);
}

TEST(Percentile, IsWithinFourPercentOfTheSortedSamples) {
  Rng rng(12);
  for (int run = 0; run < 50; ++run) {
    const std::size_t size = 1 + rng.below(2000);
    std::vector<std::int64_t> sorted(size);
    Counts counts{};
    for (std::int64_t& ns : sorted) {
      ns = static_cast<std::int64_t>(std::exp2(12.0 + 20.0 * rng.unit()));
      ++counts[LatencyBuckets::index(Duration(ns))];
    }
    std::sort(sorted.begin(), sorted.end());
    for (const double fraction : {0.1, 0.5, 0.9, 0.99, 1.0}) {
      const auto rank = static_cast<std::size_t>(
          std::max(1.0, std::ceil(fraction * static_cast<double>(size) - 1e-9)));
      const auto exact = static_cast<double>(sorted[rank - 1]);
      const auto found = static_cast<double>(percentile(counts, size, fraction).count());
      ASSERT_NEAR(found / exact, 1.0, 0.04) << "run " << run << " fraction " << fraction;
    }
  }
}

TEST(Percentile, OfNothingIsZeroAndOfOneIsIt) {
  Counts counts{};
  EXPECT_EQ(percentile(counts, 0, 0.5), Duration(0));
  counts[100] = 1;
  for (const double fraction : {0.0, 0.1, 0.5, 1.0}) {
    EXPECT_EQ(percentile(counts, 1, fraction), LatencyBuckets::value(100));
  }
}

}  // namespace
}  // namespace weir::inline v0::inline control
