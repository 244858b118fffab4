#include "processor_sharing.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint at(int ms) {
  return TimePoint(milliseconds(ms));
}

TEST(ProcessorSharing, TwoJobsOnOneCoreTakeTwiceAsLong) {
  ProcessorSharing cpu;
  cpu.set_speed(at(0), 1);
  cpu.add(1, 0, milliseconds(10));
  cpu.set_speed(at(5), 0.5);  // a second one arrives: half of the first is done
  cpu.add(2, 0, milliseconds(10));
  EXPECT_EQ(cpu.next().attempt, 1U);
  EXPECT_NEAR(to_millis(cpu.next_end() - at(0)), 15, 0.001);
  cpu.set_speed(at(16), 1);
  ASSERT_TRUE(cpu.next_has_ended());
  cpu.pop();
  EXPECT_EQ(cpu.next().attempt, 2U);
  EXPECT_FALSE(cpu.next_has_ended());
  EXPECT_NEAR(to_millis(cpu.next_end() - at(0)), 20.5, 0.001);
}

TEST(ProcessorSharing, NothingEndsWhileItStandsStill) {
  ProcessorSharing cpu;
  cpu.set_speed(at(0), 0);
  cpu.add(1, 0, milliseconds(10));
  EXPECT_EQ(cpu.next_end(), TimePoint::max());
  cpu.set_speed(at(100), 1);
  EXPECT_NEAR(to_millis(cpu.next_end() - at(0)), 110, 0.001);
}

}  // namespace
}  // namespace weir::sim
