#include "upstream/latency_counts.h"

#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LatencyCounts, BucketsGrowWithTheLatency) {
  std::size_t before = 0;
  for (double ns = 1; ns < 1e12; ns *= 1.01) {
    const std::size_t bucket = LatencyCounts::bucket_of(Duration(static_cast<std::int64_t>(ns)));
    ASSERT_GE(bucket, before);
    ASSERT_LT(bucket, LatencyCounts::kBuckets);
    before = bucket;
  }
  EXPECT_EQ(before, LatencyCounts::kBuckets - 1);
}

TEST(LatencyCounts, ABucketsValueIsWithinAnEighthOfWhatItHolds) {
  for (double ns = 20e3; ns < 60e9; ns *= 1.003) {
    const Duration latency(static_cast<std::int64_t>(ns));
    const Duration value = LatencyCounts::value_of(LatencyCounts::bucket_of(latency));
    ASSERT_NEAR(static_cast<double>(value.count()) / ns, 1.0, 0.126) << ns;
  }
}

TEST(LatencyCounts, EachBucketHoldsItsOwnValue) {
  for (std::size_t i = 0; i < LatencyCounts::kBuckets; ++i) {
    EXPECT_EQ(LatencyCounts::bucket_of(LatencyCounts::value_of(i)), i);
  }
}

TEST(LatencyCounts, ExtremesHaveBuckets) {
  EXPECT_EQ(LatencyCounts::bucket_of(Duration(-5)), 0U);
  EXPECT_EQ(LatencyCounts::bucket_of(Duration(0)), 0U);
  EXPECT_EQ(LatencyCounts::bucket_of(Duration::max()), LatencyCounts::kBuckets - 1);
}

TEST(LatencyCounts, NoSamplesHaveNoQuantiles) {
  const LatencySummary summary = summarize(LatencyCounts::Reading{});
  EXPECT_EQ(summary.samples, 0U);
  EXPECT_EQ(summary.p50, Duration(0));
  EXPECT_EQ(summary.p99, Duration(0));
}

TEST(LatencyCounts, QuantilesAreThoseOfTheSamples) {
  LatencyCounts counts;
  for (int i = 0; i < 98; ++i) counts.record(milliseconds(1));
  counts.record(seconds(1));
  counts.record(seconds(1));
  LatencyCounts::Reading reading{};
  counts.read(reading);
  const LatencySummary summary = summarize(reading);
  EXPECT_EQ(summary.samples, 100U);
  EXPECT_EQ(summary.p50, LatencyCounts::value_of(LatencyCounts::bucket_of(milliseconds(1))));
  EXPECT_EQ(summary.p99, LatencyCounts::value_of(LatencyCounts::bucket_of(seconds(1))));
}

TEST(LatencyCounts, OneSampleIsItsOwnQuantiles) {
  LatencyCounts counts;
  counts.record(microseconds(300));
  LatencyCounts::Reading reading{};
  counts.read(reading);
  const LatencySummary summary = summarize(reading);
  EXPECT_EQ(summary.p50, summary.p99);
  EXPECT_EQ(LatencyCounts::bucket_of(summary.p50), LatencyCounts::bucket_of(microseconds(300)));
}

TEST(LatencyCounts, AWindowIsTheDifferenceOfTwoReadings) {
  LatencyCounts counts;
  counts.record(seconds(5));
  LatencyCounts::Reading before{};
  counts.read(before);
  counts.record(milliseconds(2));
  LatencyCounts::Reading after{};
  counts.read(after);
  const LatencySummary window = summarize(difference(after, before));
  EXPECT_EQ(window.samples, 1U);
  EXPECT_LT(window.p99, milliseconds(3));
}

TEST(LatencyCounts, ReadingsOfLoopsAddUp) {
  LatencyCounts first;
  LatencyCounts second;
  first.record(milliseconds(1));
  second.record(milliseconds(1));
  LatencyCounts::Reading sum{};
  first.read(sum);
  second.read(sum);
  EXPECT_EQ(summarize(sum).samples, 2U);
}

}  // namespace
}  // namespace weir::upstream
