#include "timeout_lane.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

TEST(TimeoutLane, IsFirstInFirstOutThroughGrowthAndWrapping) {
  TimeoutLane lane;
  std::uint32_t pushed = 0;
  std::uint32_t popped = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 7; ++i) {
      lane.push({time_from_ns(pushed), pushed, 0});
      ++pushed;
    }
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(lane.front().attempt, popped);
      ASSERT_EQ(to_ns(lane.front().at), popped);
      lane.pop();
      ++popped;
    }
  }
  EXPECT_EQ(lane.size(), pushed - popped);
  while (!lane.empty()) {
    ASSERT_EQ(lane.front().attempt, popped++);
    lane.pop();
  }
  EXPECT_EQ(popped, pushed);
}

}  // namespace
}  // namespace weir::sim
