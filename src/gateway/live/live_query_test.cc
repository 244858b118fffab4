#include "live/live_query.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;

TEST(LiveQuery, EverythingHasADefault) {
  const auto read = read_live_query("", "");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->view, LiveView::kNow);
  EXPECT_EQ(read->rows, 50U);
  EXPECT_FALSE(read->last_id.has_value());
}

TEST(LiveQuery, EveryParameterIsRead) {
  const auto read = read_live_query(
      "view=replicas&upstream=a%20b&sort=p99&filter=10.0&bad=1&from=100&rows=25", "17");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->view, LiveView::kReplicas);
  EXPECT_EQ(read->upstream, "a b");
  EXPECT_EQ(read->sort, ReplicaSort::kP99);
  EXPECT_EQ(read->filter, "10.0");
  EXPECT_TRUE(read->bad);
  EXPECT_EQ(read->from, 100U);
  EXPECT_EQ(read->rows, 25U);
  EXPECT_EQ(read->last_id, 17U);
}

TEST(LiveQuery, ABadParameterIsNamedWithWhatItMayBe) {
  const struct {
    const char* query;
    const char* error;
  } kCases[] = {{"view=all", "view: one of now refusals limit replicas memory config none"},
                {"sort=up", "sort: one of worst name p99 in_flight"},
                {"bad=yes", "bad: 0 or 1"},
                {"from=-1", "from: a number"},
                {"rows=0", "rows: 1 to 100"},
                {"rows=101", "rows: 1 to 100"},
                {"row=1", "row: not one of view upstream"},
                {"view", "view: one of"}};
  for (const auto& one : kCases) {
    const auto read = read_live_query(one.query, "");
    ASSERT_FALSE(read.has_value()) << one.query;
    EXPECT_THAT(read.error(), HasSubstr(one.error));
  }
  EXPECT_FALSE(read_live_query("filter=" + std::string(101, 'x'), "").has_value());
}

TEST(LiveQuery, AnEventIdOfSomebodyElseIsIgnored) {
  EXPECT_FALSE(read_live_query("", "seventeen")->last_id.has_value());
}

}  // namespace
}  // namespace weir::gateway
