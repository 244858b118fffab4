#include "control/compared_latency.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

TEST(ComparedLatency, AWindowIsOpenUntilItHasEnoughAnswers) {
  ComparedLatency one;
  EXPECT_FALSE(one.on_second(2, milliseconds(100)));
  EXPECT_FALSE(one.on_second(15, milliseconds(100)));
  EXPECT_EQ(one.median(), Duration(0));
  EXPECT_TRUE(one.on_second(16, milliseconds(100)));
  EXPECT_EQ(one.median(), Duration(milliseconds(100)));
  EXPECT_FALSE(one.on_second(1, milliseconds(5)));
  EXPECT_EQ(one.median(), Duration(milliseconds(100))) << "of the last full window";
}

TEST(ComparedLatency, WhoeverAnswersHardlyAtAllIsNotKnown) {
  ComparedLatency one;
  EXPECT_TRUE(one.on_second(100, milliseconds(100)));
  for (std::uint32_t i = 1; i < ComparedLatency::kSecondsMax; ++i) {
    EXPECT_FALSE(one.on_second(3, milliseconds(100)));
  }
  EXPECT_TRUE(one.on_second(3, milliseconds(100)));
  EXPECT_EQ(one.median(), Duration(0));
}

TEST(ComparedLatency, TheWorstIsComparedWithTheLowerMedianOfThoseThatAreKnown) {
  const auto ms = [](int n) { return Duration(milliseconds(n)); };
  EXPECT_EQ(worst_of({}), 0);
  EXPECT_EQ(worst_of({ms(10), ms(0), ms(0)}), 0);
  EXPECT_EQ(worst_of({ms(100), ms(10)}), 10);
  EXPECT_EQ(worst_of({ms(10), ms(40), ms(0), ms(20)}), 2);
}

}  // namespace
}  // namespace weir::inline v0::inline control
