#include "live/upstream_history.h"

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(UpstreamHistory, KeepsAQuarterOfAnHour) {
  UpstreamHistory history;
  for (int i = 0; i < 1000; ++i) history.push({.offered = static_cast<float>(i)});
  ASSERT_EQ(history.rows().size(), 900U);
  EXPECT_EQ(history.rows()[0].offered, 100);
  EXPECT_EQ(history.rows().back().offered, 999);
}

TEST(UpstreamHistory, BinsAreOrderedAndBounded) {
  EXPECT_EQ(UpstreamHistory::bin_of(-1), 0U);
  EXPECT_EQ(UpstreamHistory::bin_of(0.9), 0U);
  EXPECT_EQ(UpstreamHistory::bin_of(7.5), 7U);
  EXPECT_EQ(UpstreamHistory::bin_of(8), 8U);
  EXPECT_EQ(UpstreamHistory::bin_of(16), 12U);
  EXPECT_EQ(UpstreamHistory::bin_of(1e9), UpstreamHistory::kKneeBins - 1);
  std::size_t before = 0;
  for (double in_flight = 0; in_flight < 2000; in_flight += 0.5) {
    const std::size_t bin = UpstreamHistory::bin_of(in_flight);
    EXPECT_GE(bin, before);
    before = bin;
  }
}

TEST(UpstreamHistory, TheKneeHoldsMeansOfTheSecondsOfABin) {
  UpstreamHistory history;
  history.note_answers(100, 50, 80);   // 5 in flight
  history.note_answers(110, 50, 100);  // 5.5
  history.note_answers(0, 50, 80);     // says nothing
  history.note_answers(400, 100, 300);
  const std::vector<KneePoint> knee = history.knee();
  ASSERT_EQ(knee.size(), 2U);
  EXPECT_DOUBLE_EQ(knee[0].in_flight, 5.25);
  EXPECT_DOUBLE_EQ(knee[0].answered, 105);
  EXPECT_DOUBLE_EQ(knee[0].p99_ms, 90);
  EXPECT_DOUBLE_EQ(knee[0].seconds, 2);
  EXPECT_DOUBLE_EQ(knee[1].in_flight, 40);
}

TEST(UpstreamHistory, OldSecondsOfABinCountForLess) {
  UpstreamHistory history;
  for (int i = 0; i < 5000; ++i) history.note_answers(100, 50, 80);
  for (int i = 0; i < 900; ++i) history.note_answers(110, 50, 80);
  EXPECT_LE(history.knee()[0].seconds, 901);
  EXPECT_GT(history.knee()[0].answered, 107);
}

TEST(KneeSentence, SaysWhatAHigherLimitBuys) {
  const KneePoint low{.in_flight = 40, .answered = 1000, .p99_ms = 50, .seconds = 60};
  const auto with = [&](double answered, double seconds = 60) {
    return knee_sentence(
        {low, {.in_flight = 48, .answered = answered, .p99_ms = 60, .seconds = seconds}});
  };
  EXPECT_EQ(with(1010), "40 to 48 in flight gave +1 %: a higher limit buys nothing");
  EXPECT_EQ(with(900), "40 to 48 in flight gave -10 %: a higher limit buys nothing");
  EXPECT_EQ(with(1070), "40 to 48 in flight gave +7 %: a higher limit buys little");
  EXPECT_EQ(with(1190), "40 to 48 in flight gave +19 %: with more in flight, more was answered");
  EXPECT_EQ(with(1010, 3), "too few different loads were seen to judge the limit");
  EXPECT_EQ(knee_sentence({}), "too few different loads were seen to judge the limit");
}

}  // namespace
}  // namespace weir::gateway
