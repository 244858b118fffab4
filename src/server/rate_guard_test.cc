#include "rate_guard.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline server {
namespace {

using std::chrono::seconds;

constexpr RateGuard::Rule kRule = {.window = seconds(10), .bytes_per_second = 100};
constexpr TimePoint kStart = time_from_ns(5'000'000'000);

TEST(RateGuard, EnoughBytesOpenTheNextWindow) {
  RateGuard guard;
  EXPECT_EQ(guard.deadline(), TimePoint::max());
  guard.start(kStart, kRule);
  guard.add(1000, kStart, kRule);
  EXPECT_EQ(guard.deadline(), kStart + seconds(10));
  EXPECT_FALSE(guard.too_slow(kStart + seconds(10), kRule));
  EXPECT_EQ(guard.deadline(), kStart + seconds(20));
}

TEST(RateGuard, OneByteShortIsTooSlow) {
  RateGuard guard;
  guard.start(kStart, kRule);
  guard.add(999, kStart, kRule);
  EXPECT_FALSE(guard.too_slow(kStart + seconds(9), kRule)) << "not before the window is over";
  EXPECT_TRUE(guard.too_slow(kStart + seconds(10), kRule));
}

TEST(RateGuard, SurplusIsNotSavedUp) {
  RateGuard guard;
  guard.start(kStart, kRule);
  guard.add(1'000'000, kStart, kRule);
  EXPECT_FALSE(guard.too_slow(kStart + seconds(10), kRule));
  EXPECT_TRUE(guard.too_slow(kStart + seconds(20), kRule));
}

TEST(RateGuard, TheLagIsTheTimeThatItsBytesDoNotCover) {
  RateGuard guard;
  EXPECT_EQ(guard.lag(kStart), Duration(0)) << "it does not run";
  guard.start(kStart, kRule);
  EXPECT_EQ(guard.lag(kStart), Duration(0));
  EXPECT_EQ(guard.lag(kStart + seconds(2)), seconds(2));
  guard.add(1, kStart + seconds(2), kRule);
  EXPECT_EQ(guard.lag(kStart + seconds(2)), std::chrono::milliseconds(1990));
  guard.add(100'000, kStart + seconds(3), kRule);
  EXPECT_EQ(guard.lag(kStart + seconds(3)), Duration(0));
  EXPECT_EQ(guard.lag(kStart + seconds(5)), seconds(2)) << "a surplus is not saved up";
  EXPECT_FALSE(guard.too_slow(kStart + seconds(10), kRule));
  EXPECT_EQ(guard.lag(kStart + seconds(11)), seconds(8)) << "a new window changes nothing";
  guard.stop();
  EXPECT_EQ(guard.lag(kStart + seconds(11)), Duration(0));
}

TEST(RateGuard, RateZeroStillAsksForProgress) {
  constexpr RateGuard::Rule kAny = {.window = seconds(10), .bytes_per_second = 0};
  RateGuard guard;
  guard.start(kStart, kAny);
  EXPECT_TRUE(guard.too_slow(kStart + seconds(10), kAny));
  guard.start(kStart, kAny);
  guard.add(1, kStart, kRule);
  EXPECT_FALSE(guard.too_slow(kStart + seconds(10), kAny));
}

TEST(RateGuard, StoppedGuardIsNeverTooSlow) {
  RateGuard guard;
  guard.start(kStart, kRule);
  guard.stop();
  EXPECT_FALSE(guard.running());
  EXPECT_FALSE(guard.too_slow(kStart + seconds(100), kRule));
}

}  // namespace
}  // namespace weir::inline v0::inline server
