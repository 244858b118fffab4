#include "live/latest.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

std::vector<int> all_of(const Latest<int, 3>& latest) {
  std::vector<int> all;
  for (std::size_t i = 0; i < latest.size(); ++i) all.push_back(latest[i]);
  return all;
}

TEST(Latest, KeepsTheLastValuesOldestFirst) {
  Latest<int, 3> latest;
  EXPECT_TRUE(latest.empty());
  for (int i = 1; i <= 2; ++i) latest.push(i);
  EXPECT_THAT(all_of(latest), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(latest.back(), 2);
  for (int i = 3; i <= 7; ++i) latest.push(i);
  EXPECT_THAT(all_of(latest), ::testing::ElementsAre(5, 6, 7));
  EXPECT_EQ(latest.back(), 7);
}

TEST(Latest, SaysWhereTheLastFewBegin) {
  Latest<int, 3> latest;
  EXPECT_EQ(latest.begin_of_last(2), 0U);
  for (int i = 0; i < 9; ++i) latest.push(i);
  EXPECT_EQ(latest.begin_of_last(2), 1U);
  EXPECT_EQ(latest.begin_of_last(20), 0U);
}

}  // namespace
}  // namespace weir::gateway
