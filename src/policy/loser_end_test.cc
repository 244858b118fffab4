#include "policy/loser_end.h"

#include <deque>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr TimePoint kLoserStart = time_from_ns(1'000'000'000);

TEST(LoserEnd, Http1DrainsWhatIsShortAndClosesOtherwise) {
  CancelPace pace;
  const auto ends = [&](std::optional<std::uint64_t> left) {
    return end_of_loser({.multiplexed = false, .bytes_left = left}, pace, {}, kLoserStart);
  };
  EXPECT_EQ(ends(std::nullopt), LoserEnd::kClose);
  EXPECT_EQ(ends(0), LoserEnd::kDrain);
  EXPECT_EQ(ends(65'536), LoserEnd::kDrain);
  EXPECT_EQ(ends(65'537), LoserEnd::kClose);
  EXPECT_EQ(pace.resets, 0U);
}

TEST(LoserEnd, Http2ResetsUpToTheBurstThenDrains) {
  CancelPace pace{.streams = 10'000};
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, kLoserStart), LoserEnd::kReset);
  }
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, kLoserStart), LoserEnd::kDrain);
  const TimePoint later = kLoserStart + std::chrono::milliseconds(334);
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, later), LoserEnd::kReset);
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, kLoserStart), LoserEnd::kDrain);
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, later), LoserEnd::kDrain);  // once only
}

TEST(LoserEnd, ALongPauseGivesNoMoreThanTheBurst) {
  CancelPace pace{.streams = 10'000};
  TimePoint now = kLoserStart;
  for (int pause = 0; pause < 2; ++pause) {
    int resets = 0;
    while (end_of_loser({.multiplexed = true}, pace, {}, now) == LoserEnd::kReset) ++resets;
    EXPECT_EQ(resets, 60);
    now += std::chrono::hours(1);
  }
}

TEST(LoserEnd, ResetsStayAThirdOfTheStreams) {
  CancelPace pace{.streams = 90, .resets = 29};
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, kLoserStart), LoserEnd::kReset);
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, kLoserStart), LoserEnd::kDrain);
  pace.streams = 93;
  EXPECT_EQ(end_of_loser({.multiplexed = true}, pace, {}, kLoserStart), LoserEnd::kReset);
}

TEST(LoserEnd, BugRapidResetDefencesAreNotTriggeredByAnySchedule) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    CancelPace pace;
    TimePoint now = kLoserStart;
    std::deque<TimePoint> resets;  // of the last 30 s
    for (int i = 0; i < 5000; ++i) {
      now += Duration(static_cast<std::int64_t>(rng.below(60'000'000)));
      ++pace.streams;
      if (end_of_loser({.multiplexed = true}, pace, {}, now) == LoserEnd::kReset) {
        resets.push_back(now);
      }
      while (!resets.empty() && now - resets.front() > std::chrono::seconds(30)) {
        resets.pop_front();
      }
      ASSERT_LT(resets.size(), 200U);
      ASSERT_TRUE(pace.streams < 500 || 2 * pace.resets < pace.streams);
    }
    ASSERT_GT(pace.resets, 200U);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
