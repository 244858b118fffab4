#include "baggage.h"

#include <string>

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

std::string without(std::string_view baggage) {
  std::string out(baggage.size(), '\0');
  return std::string(without_member(baggage, kPriorityMember, out));
}

TEST(Baggage, TheFirstMemberThatNamesAClassCounts) {
  const auto read = [](const TestHead& head) { return baggage_priority(head.list()); };
  EXPECT_EQ(read({{"baggage", "weir.priority=low"}}), Priority::kLow);
  EXPECT_EQ(read({{"baggage", "a=b , weir.priority = high ;x=y, c=d"}}), Priority::kHigh);
  EXPECT_EQ(read({{"baggage", "a=b"}, {"baggage", "weir.priority=low,weir.priority=high"}}),
            Priority::kLow);
  EXPECT_EQ(read({{"baggage", "weir.priority=urgent,weir.priority=high"}}), std::nullopt);
  EXPECT_EQ(read({{"baggage", "weir.priorit=low,weir.priority"}}), std::nullopt);
  EXPECT_EQ(read({{"baggage", ",,;=,"}}), std::nullopt);
  EXPECT_EQ(read({}), std::nullopt);
}

TEST(Baggage, AMemberIsRemovedInEverySpelling) {
  EXPECT_EQ(without("a=b, weir.priority=critical,c=d;p"), "a=b,c=d;p");
  EXPECT_EQ(without("Weir.Priority=critical"), "");
  EXPECT_EQ(without("weir.priority ;p=1 , a=b"), "a=b");
  EXPECT_EQ(without(" , weir.priority = high,weir.priority=low,,"), "");
  EXPECT_EQ(without("xweir.priority=high,weir.priorityx=1"),
            "xweir.priority=high,weir.priorityx=1");
  EXPECT_TRUE(has_member("a=b,\tWEIR.priority=low", kPriorityMember));
  EXPECT_FALSE(has_member("a=weir.priority", kPriorityMember));
}

}  // namespace
}  // namespace weir::gateway
