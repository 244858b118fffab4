#include "table.h"

#include <gtest/gtest.h>

namespace weir::app::top {
namespace {

TEST(TopTable, LeavesOutWhatMattersLeastAndGrowsNames) {
  Table table({{.title = "name", .width = 4, .right = false, .grows = true},
               {.title = "rate", .width = 5},
               {.title = "p99", .width = 5, .drop = 1},
               {.title = "zone", .width = 5, .right = false, .drop = 2}});
  table.add({{"checkout"}, {"12/s"}, {"3 ms"}, {"a"}});
  EXPECT_EQ(table.lines(40)[0].plain(), "name      rate   p99 zone ");
  EXPECT_EQ(table.lines(40)[1].plain(), "checkout  12/s  3 ms a    ");
  EXPECT_EQ(table.lines(17)[1].plain(), "chec…  12/s  3 ms");
  EXPECT_EQ(table.lines(12)[1].plain(), "check…  12/s");
  EXPECT_EQ(table.lines(5)[1].plain(), "che……");
}

}  // namespace
}  // namespace weir::app::top
