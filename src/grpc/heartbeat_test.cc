#include "heartbeat.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "weir/embed/clock.h"

namespace weir::grpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool wait_until_beats(std::uint64_t count) {
  const TimePoint end = embed::now() + seconds(20);
  while (Heartbeat::beats() < count && embed::now() < end) std::this_thread::yield();
  return Heartbeat::beats() >= count;
}

TEST(Heartbeat, ItBeatsAsLongAsSomebodyHoldsIt) {
  const std::uint64_t before = Heartbeat::beats();
  auto heartbeat = Heartbeat::share(milliseconds(10));
  EXPECT_TRUE(wait_until_beats(before + 3));
  heartbeat.reset();
  auto again = Heartbeat::share(milliseconds(10));
  EXPECT_TRUE(wait_until_beats(Heartbeat::beats() + 2));
}

TEST(Heartbeat, TheProcessHasOneAtTheFastestPeriodAskedFor) {
  const auto slow = Heartbeat::share(milliseconds(900));
  const auto fast = Heartbeat::share(milliseconds(10));
  EXPECT_EQ(slow, fast);
  EXPECT_TRUE(wait_until_beats(Heartbeat::beats() + 3));
}

}  // namespace
}  // namespace weir::grpc
