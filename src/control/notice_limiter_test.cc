#include "notice_limiter.h"

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::seconds;

TEST(NoticeLimiter, TheFirstGoesOutAtOnceAndTheNextAfterASecondStandsForAllSince) {
  NoticeLimiterOf<2> limiter;
  EXPECT_EQ(limiter.note(0, kStart), 1U);
  for (int i = 0; i < 99; ++i) EXPECT_EQ(limiter.note(0, after_ms(10 * i)), 0U);
  EXPECT_EQ(limiter.note(0, after_ms(999)), 0U);
  EXPECT_EQ(limiter.note(0, after_ms(1000)), 101U);
  EXPECT_EQ(limiter.note(0, after_ms(1001)), 0U);
}

TEST(NoticeLimiter, KindsDoNotShareTheirQuietTime) {
  NoticeLimiterOf<2> limiter;
  EXPECT_EQ(limiter.note(0, kStart), 1U);
  EXPECT_EQ(limiter.note(1, kStart), 1U);
  EXPECT_EQ(limiter.note(0, kStart), 0U);
}

TEST(NoticeLimiter, TimeThatGoesBackAlittleIsStillQuiet) {
  NoticeLimiterOf<1> limiter;
  EXPECT_EQ(limiter.note(0, after_ms(10)), 1U);
  EXPECT_EQ(limiter.note(0, after_ms(9)), 0U);
}

// One notice per second and kind, however many threads note events; every event is counted.
TEST(NoticeLimiter, ThreadsLoseNoEventAndSendOneNoticePerSecond) {
  constexpr int kSeconds = 20;
  constexpr int kEach = rounds(20'000);
  constexpr std::size_t kThreads = 4;
  NoticeLimiterOf<1> limiter;
  std::atomic<std::uint64_t> stood_for{0};
  for (int s = 0; s < kSeconds; ++s) {
    std::atomic<int> notices{0};
    run_together(kThreads, [&](std::size_t) {
      for (int i = 0; i < kEach; ++i) {
        const std::uint64_t count = limiter.note(0, kStart + seconds(s));
        if (count == 0) continue;
        stood_for.fetch_add(count);
        notices.fetch_add(1);
      }
    });
    EXPECT_EQ(notices.load(), 1) << s;
  }
  // One more event, a second later, stands for all that are not reported yet, and for itself.
  stood_for += limiter.note(0, kStart + seconds(kSeconds));
  EXPECT_EQ(stood_for.load(), std::uint64_t{kSeconds} * kThreads * kEach + 1);
}

}  // namespace
}  // namespace weir::inline v0::inline control
