#include "override_table.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kBegin = time_from_ns(1'000'000'000);

Override drain(const std::string& endpoint, TimePoint until = kBegin + minutes(10)) {
  return {.kind = OverrideKind::kDrain, .upstream = "app", .target = endpoint, .until = until};
}

TEST(OverrideTable, EndsEachOverrideAtItsTimeAndNotBefore) {
  OverrideTable table;
  ASSERT_NE(table.put(drain("a", kBegin + seconds(10))), nullptr);
  ASSERT_NE(table.put(drain("b", kBegin + seconds(20))), nullptr);
  EXPECT_EQ(table.next_end(), kBegin + seconds(10));
  EXPECT_TRUE(table.expire(kBegin + seconds(10) - Duration(1)).empty());
  const auto over = table.expire(kBegin + seconds(10));
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].target, "a");
  ASSERT_EQ(table.all().size(), 1U);
  EXPECT_EQ(table.all()[0].target, "b");
  EXPECT_EQ(table.expire(kBegin + minutes(1)).size(), 1U);
  EXPECT_EQ(table.next_end(), TimePoint::max());
}

TEST(OverrideTable, TheSameTargetIsRenewedAndKeepsItsId) {
  OverrideTable table;
  ASSERT_NE(table.put(drain("a", kBegin + seconds(10))), nullptr);
  const Override* const again = table.put(drain("a", kBegin + seconds(60)));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->id(), "o1");
  EXPECT_EQ(table.all().size(), 1U);
  EXPECT_TRUE(table.expire(kBegin + seconds(10)).empty());
}

TEST(OverrideTable, OnlyOneLogIsInForce) {
  OverrideTable table;
  ASSERT_NE(table.put({.kind = OverrideKind::kLog, .target = "actor a"}), nullptr);
  ASSERT_NE(table.put({.kind = OverrideKind::kLog, .target = "route 1"}), nullptr);
  ASSERT_EQ(table.all().size(), 1U);
  EXPECT_EQ(table.all()[0].target, "route 1");
}

TEST(OverrideTable, IsFullAtItsBoundAndHasRoomAgainAfterAnEnd) {
  OverrideTable table;
  for (std::size_t i = 0; i < OverrideTable::kMost; ++i) {
    ASSERT_NE(table.put(drain(std::to_string(i))), nullptr);
  }
  EXPECT_EQ(table.put(drain("more")), nullptr);
  EXPECT_NE(table.put(drain("3")), nullptr) << "renewing needs no place";
  ASSERT_TRUE(table.remove("o4").has_value());
  const Override* const put = table.put(drain("more"));
  ASSERT_NE(put, nullptr);
  EXPECT_EQ(put->id(), "o17") << "an id is not used again";
}

TEST(OverrideTable, RemovesByIdOnly) {
  OverrideTable table;
  ASSERT_NE(table.put(drain("a")), nullptr);
  EXPECT_FALSE(table.remove("o2").has_value());
  EXPECT_FALSE(table.remove("").has_value());
  EXPECT_EQ(table.remove("o1")->target, "a");
  EXPECT_TRUE(table.all().empty());
}

TEST(OverrideTable, NoKindLastsLongerThanAnHour) {
  for (const OverrideKind kind :
       {OverrideKind::kDrain, OverrideKind::kShadow, OverrideKind::kCap, OverrideKind::kLog}) {
    EXPECT_LE(OverrideTable::longest(kind), std::chrono::hours(1));
    EXPECT_LE(OverrideTable::usual(kind), OverrideTable::longest(kind));
  }
  EXPECT_EQ(OverrideTable::longest(OverrideKind::kLog), seconds(60));
}

TEST(OverrideTable, SaysWhatEachIsAbout) {
  EXPECT_EQ(drain("10.0.0.1:80").sentence(), "drain app 10.0.0.1:80");
  EXPECT_EQ((Override{.kind = OverrideKind::kShadow, .target = "limit"}.sentence()),
            "shadow limit");
  EXPECT_EQ((Override{.kind = OverrideKind::kCap, .upstream = "app", .limit = 40}.sentence()),
            "cap app to 40");
  EXPECT_EQ((Override{.kind = OverrideKind::kLog, .target = "actor alice"}.sentence()),
            "log actor alice");
}

}  // namespace
}  // namespace weir::gateway
