#include "weir/embed/clock.h"

#include <gtest/gtest.h>

namespace weir::inline v0::embed {
namespace {

TEST(EmbedClock, NeverGoesBack) {
  TimePoint last = now();
  EXPECT_GT(last, TimePoint{});
  for (int i = 0; i < 1000; ++i) {
    const TimePoint next = now();
    ASSERT_GE(next, last);
    last = next;
  }
}

TEST(EmbedClock, SeedsDiffer) {
  EXPECT_NE(random_seed(), random_seed());
}

}  // namespace
}  // namespace weir::inline v0::embed
