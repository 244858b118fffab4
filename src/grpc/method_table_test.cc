#include "weir/experimental/grpc/method_table.h"

#include <gtest/gtest.h>

namespace weir::grpc {
namespace {

TEST(MethodTable, AListedMethodHasItsRuleAndOthersTheDefault) {
  const MethodTable table{{"/store.Store/GetValue", {.priority = Priority::kHigh, .cost = 3}},
                          {"/store.Store/BatchGet", {.idempotent = true}}};
  EXPECT_EQ(table.find("/store.Store/GetValue").priority, Priority::kHigh);
  EXPECT_EQ(table.find("/store.Store/GetValue").cost, 3U);
  EXPECT_TRUE(table.find("/store.Store/BatchGet").idempotent);
  EXPECT_EQ(table.find("/store.Store/GetValu"), MethodRule{});
  EXPECT_EQ(table.find(""), MethodRule{});
}

TEST(MethodTable, OfTwoEntriesOfOneNameTheLaterCounts) {
  MethodTable table{{"/a.A/B", {.cost = 1}}, {"/a.A/B", {.cost = 2}}};
  table.set("/a.A/B", {.cost = 5});
  EXPECT_EQ(table.find("/a.A/B").cost, 5U);
  EXPECT_EQ(table.entries().size(), 1U);
}

TEST(MethodTable, ANameThatNoMethodCanHaveIsAnError) {
  for (const char* name : {"", "GetValue", "/store.Store", "/store.Store/", "//GetValue",
                           "store.Store/GetValue", "/a/b/c", "/store.Store/Get Value"}) {
    MethodTable table;
    table.set(name, {});
    const ConfigErrors errors = table.validate();
    ASSERT_EQ(errors.size(), 1U) << name;
    EXPECT_EQ(errors[0].value, name);
    EXPECT_EQ(errors[0].allowed, "a full name: /package.Service/Method");
  }
  EXPECT_TRUE((MethodTable{{"/store.Store/GetValue", {}}}.validate().empty()));
}

TEST(MethodTable, ACostOutsideOfItsRangeIsAnErrorWithTheRange) {
  const ConfigErrors errors = MethodTable{{"/a.A/B", {.cost = 0}}}.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "methods./a.A/B.cost");
  EXPECT_EQ(errors[0].allowed, "1 to 16383");
}

}  // namespace
}  // namespace weir::grpc
