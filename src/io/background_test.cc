#include "io/background.h"

#include <atomic>

#include <gtest/gtest.h>

namespace weir::inline v0::io {
namespace {

TEST(Background, CallsAgainAndAgainAndOnceMoreAtTheEnd) {
  std::atomic<int> calls{0};
  Background often(std::chrono::microseconds(10), [&] { ++calls; });
  while (calls < 3) std::this_thread::yield();
  often.stop();
  const int then = calls;
  often.stop();
  EXPECT_EQ(calls, then) << "not after it was stopped";

  std::atomic<int> last{0};
  {
    Background seldom(std::chrono::hours(1), [&] { ++last; });
  }
  EXPECT_EQ(last, 1) << "what is left at the end is done";
}

}  // namespace
}  // namespace weir::inline v0::io
