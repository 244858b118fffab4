#include "policy/check_schedule.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart = TimePoint{} + seconds(100);

TEST(CheckSchedule, FirstChecksAreSpreadOverTheInterval) {
  Rng rng(1);
  int early = 0;
  for (int i = 0; i < 1000; ++i) {
    const CheckSchedule schedule(kStart, {}, rng);
    EXPECT_GE(schedule.next(), kStart);
    EXPECT_LT(schedule.next(), kStart + seconds(2));
    early += schedule.next() < kStart + milliseconds(500) ? 1 : 0;
  }
  EXPECT_GT(early, 150);
  EXPECT_LT(early, 350);
}

TEST(CheckSchedule, LaterOnesKeepTheIntervalWithJitter) {
  Rng rng(2);
  CheckSchedule schedule(kStart, {}, rng);
  TimePoint now = schedule.next();
  Duration shortest = seconds(9);
  Duration longest{};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(schedule.due(now));
    schedule.sent();
    schedule.finished(now, false, {}, rng);
    shortest = std::min(shortest, schedule.next() - now);
    longest = std::max(longest, schedule.next() - now);
    now = schedule.next();
  }
  EXPECT_GE(shortest, milliseconds(1600));
  EXPECT_LT(shortest, milliseconds(1700));
  EXPECT_LE(longest, milliseconds(2400));
  EXPECT_GT(longest, milliseconds(2300));
}

TEST(CheckSchedule, ASuspectIsCheckedNowAndThenTwiceASecond) {
  Rng rng(3);
  CheckSchedule schedule(kStart, {}, rng);
  EXPECT_FALSE(schedule.due(schedule.next() - Duration(1)));
  schedule.hurry(kStart);
  EXPECT_TRUE(schedule.due(kStart));
  schedule.sent();
  schedule.finished(kStart + milliseconds(30), true, {}, rng);
  EXPECT_EQ(schedule.next(), kStart + milliseconds(530));
}

TEST(CheckSchedule, AtMostOneIsOutstanding) {
  Rng rng(4);
  CheckSchedule schedule(kStart, {}, rng);
  const TimePoint later = kStart + seconds(60);
  schedule.sent();
  EXPECT_FALSE(schedule.due(later));
  schedule.hurry(later);
  EXPECT_FALSE(schedule.due(later));
  schedule.finished(later, false, {}, rng);
  EXPECT_TRUE(schedule.due(later));  // hurry() is not forgotten
}

}  // namespace
}  // namespace weir::inline v0::inline policy
