#include "weir/experimental/io/thread_parker.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "weir/experimental/io/clock.h"

namespace weir::inline v0::io {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(ThreadParker, UnparkBeforeParkIsNotLostAndCountsOnce) {
  ThreadParker parker;
  parker.unpark();
  parker.unpark();
  const TimePoint far = monotonic_now() + hours(1);
  EXPECT_LT(parker.park_until(far), far);
  const TimePoint soon = monotonic_now() + milliseconds(2);
  EXPECT_GE(parker.park_until(soon), soon) << "the second unpark was the same as the first";
}

TEST(ThreadParker, DeadlineInThePastReturnsAtOnce) {
  ThreadParker parker;
  const TimePoint past = monotonic_now() - hours(1);
  EXPECT_GE(parker.park_until(past), past);
}

TEST(ThreadParker, HandsOverWithoutLosingOne) {
  constexpr int kRounds = 20'000;
  ThreadParker ping;
  ThreadParker pong;
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (ball.load() != 2 * i + 1) ping.park_until(monotonic_now() + hours(1));
      ball.store(2 * i + 2);
      pong.unpark();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ball.store(2 * i + 1);
    ping.unpark();
    while (ball.load() != 2 * i + 2) pong.park_until(monotonic_now() + hours(1));
  }
  other.join();
  EXPECT_EQ(ball.load(), 2 * kRounds);
}

}  // namespace
}  // namespace weir::inline v0::io
