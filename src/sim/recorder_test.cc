#include "recorder.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Scenario two_seconds() {
  Scenario s;
  s.duration = seconds(2);
  s.bucket = milliseconds(500);
  s.services.resize(1);
  s.verdicts.resize(2);
  s.verdicts[0].from = seconds(1);
  s.verdicts[0].to = seconds(2);
  s.verdicts[1].from = seconds(0);
  s.verdicts[1].to = milliseconds(1500);
  return s;
}

TEST(Recorder, FoldsBucketsIntoTheSpansThatCoverThem) {
  const Scenario s = two_seconds();
  Recorder recorder(s, {{0, Priority::kNormal}});
  for (int bucket = 0; bucket < 4; ++bucket) {
    recorder.calls(0).offered += 10;
    recorder.calls(0).ended[0] += 5;
    recorder.calls(0).latency.add(milliseconds(bucket + 1));
    recorder.close_bucket();
  }
  EXPECT_EQ(recorder.spans().front().calls[0].offered, 40U);
  EXPECT_EQ(recorder.span({seconds(1), seconds(2)}).calls[0].offered, 20U);
  EXPECT_EQ(recorder.span({seconds(0), milliseconds(1500)}).calls[0].ok(), 15U);
  EXPECT_EQ(recorder.span({seconds(1), seconds(2)}).calls[0].latency.max(),
            Duration(milliseconds(4)));
  EXPECT_EQ(recorder.series().size(), 4U);
  EXPECT_EQ(recorder.series()[2].calls[0].offered, 10U);
}

TEST(Recorder, KeepsNothingAfterTheEnd) {
  const Scenario s = two_seconds();
  Recorder recorder(s, {{0, Priority::kNormal}});
  for (int bucket = 0; bucket < 50; ++bucket) {
    recorder.calls(0).offered += 1;
    recorder.close_bucket();
  }
  EXPECT_EQ(recorder.series().size(), 4U);
  EXPECT_EQ(recorder.spans().front().calls[0].offered, 4U);
}

TEST(Recorder, WhatIsInForceStaysInForceOverBuckets) {
  const Scenario s = two_seconds();
  Recorder recorder(s, {{0, Priority::kNormal}});
  ServiceTotals& totals = recorder.service(0);
  totals.limit_min = totals.limit_max = totals.limit_end = 100;
  recorder.close_bucket();
  totals.limit_min = 60;
  totals.limit_end = 70;
  totals.queue_max = 9;
  recorder.close_bucket();
  recorder.close_bucket();
  recorder.close_bucket();
  const ServiceTotals& late = recorder.span({seconds(1), seconds(2)}).services[0];
  EXPECT_EQ(late.limit_min, 70U);
  EXPECT_EQ(late.limit_max, 70U);
  EXPECT_EQ(late.queue_max, 0U);
  const ServiceTotals& all = recorder.spans().front().services[0];
  EXPECT_EQ(all.limit_min, 60U);
  EXPECT_EQ(all.limit_max, 100U);
  EXPECT_EQ(all.limit_end, 70U);
}

}  // namespace
}  // namespace weir::sim
