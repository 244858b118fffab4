#include "weir/experimental/metrics/bounded_labels.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::metrics {
namespace {

using testing::ElementsAre;

constexpr std::array<std::string_view, 3> kReasons = {"overload", "memory", "peer_limit"};

TEST(LabelledCounters, AnUnknownValueCountsAsOther) {
  LabelledCounters counters(kReasons);
  counters.add("memory");
  counters.add("memory", 2);
  counters.add("no such reason");
  counters.add("");
  ASSERT_EQ(counters.size(), 4U);
  EXPECT_EQ(counters.value(counters.slot("memory")), 3U);
  EXPECT_EQ(counters.name(3), "other");
  EXPECT_EQ(counters.value(3), 2U);
}

TEST(LabelledCounters, TheNumberOfSeriesDoesNotGrowWithHostileNames) {
  LabelledCounters counters(kReasons);
  for (int i = 0; i < 10000; ++i) counters.add("name" + std::to_string(i));
  EXPECT_EQ(counters.size(), 4U);
  EXPECT_EQ(counters.value(counters.slot("other")), 10000U);
}

TEST(FoldTop, KeepsTheLargestAndAddsUpTheRest) {
  std::vector<LabelledValue> values = {{"a", 1}, {"b", 9}, {"c", 4}, {"d", 2}, {"e", 9}};
  EXPECT_THAT(fold_top(values, 2),
              ElementsAre(LabelledValue{"b", 9}, LabelledValue{"e", 9}, LabelledValue{"other", 7}));
}

TEST(FoldTop, LeavesAShortListAlone) {
  std::vector<LabelledValue> values = {{"a", 1}, {"b", 9}};
  EXPECT_THAT(fold_top(values, 10), ElementsAre(LabelledValue{"b", 9}, LabelledValue{"a", 1}));
  std::vector<LabelledValue> none;
  EXPECT_TRUE(fold_top(none, 10).empty());
}

TEST(FoldTop, APeerCalledOtherDoesNotMakeASecondSeries) {
  std::vector<LabelledValue> values = {{"other", 100}, {"a", 1}, {"b", 2}};
  EXPECT_THAT(fold_top(values, 1), ElementsAre(LabelledValue{"b", 2}, LabelledValue{"other", 101}));
  std::vector<LabelledValue> alone = {{"other", 3}};
  EXPECT_THAT(fold_top(alone, 10), ElementsAre(LabelledValue{"other", 3}));
}

TEST(FoldTop, ZeroKeepsNobody) {
  std::vector<LabelledValue> values = {{"a", 1}, {"b", 2}};
  EXPECT_THAT(fold_top(values, 0), ElementsAre(LabelledValue{"other", 3}));
}

}  // namespace
}  // namespace weir::metrics
