#include "overload_signal.h"

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

TEST(OverloadSignal, OneBurstIsNotOverload) {
  OverloadSignal signal;
  EXPECT_FALSE(signal.persists(kStart));
  for (int i = 0; i < 1000; ++i) signal.note(after_ms(i % 20));
  EXPECT_FALSE(signal.persists(after_ms(20)));
  EXPECT_FALSE(signal.persists(after_ms(119)));
}

TEST(OverloadSignal, EventsThatGoOnForAHundredMillisecondsAre) {
  OverloadSignal signal;
  for (int ms = 0; ms <= 100; ms += 10) {
    signal.note(after_ms(ms));
    EXPECT_EQ(signal.persists(after_ms(ms)), ms >= 100) << ms;
  }
  EXPECT_TRUE(signal.persists(after_ms(200)));   // the last event is not longer ago than that
  EXPECT_FALSE(signal.persists(after_ms(201)));  // now it is
}

TEST(OverloadSignal, AGapStartsItOver) {
  OverloadSignal signal;
  for (int ms = 0; ms <= 100; ms += 50) signal.note(after_ms(ms));
  ASSERT_TRUE(signal.persists(after_ms(100)));
  signal.note(after_ms(201));
  EXPECT_FALSE(signal.persists(after_ms(201)));
  signal.note(after_ms(301));
  EXPECT_TRUE(signal.persists(after_ms(301)));
}

TEST(OverloadSignal, EventsExactlyAHundredMillisecondsApartStillBelongTogether) {
  OverloadSignal signal;
  signal.note(after_ms(0));
  signal.note(after_ms(100));
  EXPECT_TRUE(signal.persists(after_ms(100)));
}

TEST(OverloadSignal, AnOlderClockReadingChangesNothing) {
  OverloadSignal signal;
  for (int ms = 0; ms <= 100; ms += 50) signal.note(after_ms(ms));
  signal.note(after_ms(10));
  EXPECT_TRUE(signal.persists(after_ms(100)));
}

TEST(OverloadSignal, ThreadsThatNoteTogetherAreSeen) {
  OverloadSignal signal;
  run_together(4, [&](std::size_t t) {
    for (int ms = 0; ms < 300; ++ms) signal.note(after_ms(ms) + Duration(static_cast<int>(t)));
  });
  EXPECT_TRUE(signal.persists(after_ms(300)));
  EXPECT_FALSE(signal.persists(after_ms(500)));
}

}  // namespace
}  // namespace weir::inline v0::inline control
