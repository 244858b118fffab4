#include "heartbeat.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "weir/embed/clock.h"
#include "weir/experimental/grpc/admission.h"

#include "testing/store_testing.h"

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

/// Whether a heartbeat of the process is held by something else than this.
bool beats() {
  const std::uint64_t before = Heartbeat::beats();
  return wait_until_beats(before + 2);
}

TEST(Heartbeat, AServiceThatIsGuardedByAdmitHasOneToo) {
  AdmissionController controller(testing::limit_of(4), Rng(1));
  testing::Behaviour behaviour;
  const auto callback = testing::make_callback_store(behaviour);
  const auto admission = admit(*callback, controller, {.heartbeat = milliseconds(10)});
  EXPECT_TRUE(Heartbeat::is_running());
  EXPECT_TRUE(beats());
}

TEST(Heartbeat, ZeroSwitchesItOffAndServersWithoutTheCallbackApiHaveNone) {
  AdmissionController controller(testing::limit_of(4), Rng(1));
  testing::Behaviour behaviour;
  const auto callback = testing::make_callback_store(behaviour);
  const auto sync = testing::make_sync_store(behaviour);
  {
    const testing::TestServer off(testing::limit_of(4), {.heartbeat = Duration::zero()}, *callback);
    const auto also_off = admit(*testing::make_callback_store(behaviour), controller,
                                {.heartbeat = Duration::zero()});
    const testing::TestServer without(testing::limit_of(4), {}, *sync);
    EXPECT_FALSE(Heartbeat::is_running());
  }
  const testing::TestServer on(testing::limit_of(4), {}, *callback);
  EXPECT_TRUE(Heartbeat::is_running());
}

}  // namespace
}  // namespace weir::grpc
