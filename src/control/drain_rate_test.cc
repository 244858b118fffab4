#include "drain_rate.h"

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

// Measures at `ms`, when `finished` requests have finished.
void measure(DrainRate& rate, std::int64_t ms, std::uint64_t finished, bool waited = false) {
  rate.refresh(
      after_ms(ms), [finished] { return finished; }, [waited] { return waited; });
}

bool nobody() {
  return false;
}

TEST(DrainRate, IsUnknownUntilAMeasurementSpansAHundredMilliseconds) {
  DrainRate rate;
  EXPECT_EQ(rate.per_second(kStart), 0.0);
  measure(rate, 0, 1000);  // only opens the span: earlier requests do not count
  EXPECT_EQ(rate.per_second(kStart), 0.0);
  measure(rate, 99, 1099);
  EXPECT_EQ(rate.per_second(after_ms(99)), 0.0);
  measure(rate, 100, 1050);
  EXPECT_DOUBLE_EQ(rate.per_second(after_ms(100)), 500.0);
}

TEST(DrainRate, HalfOfItIsTheNewestMeasurement) {
  DrainRate rate;
  measure(rate, 0, 0);
  measure(rate, 100, 10);
  EXPECT_DOUBLE_EQ(rate.per_second(after_ms(100)), 100.0);
  measure(rate, 200, 40);
  EXPECT_DOUBLE_EQ(rate.per_second(after_ms(200)), 200.0);
  measure(rate, 300, 40);
  EXPECT_DOUBLE_EQ(rate.per_second(after_ms(300)), 100.0);
}

TEST(DrainRate, IsFreshForASecond) {
  DrainRate rate;
  measure(rate, 0, 0);
  measure(rate, 100, 10);
  EXPECT_DOUBLE_EQ(rate.per_second(after_ms(1100)), 100.0);
  EXPECT_EQ(rate.per_second(after_ms(1101)), 0.0);
}

TEST(DrainRate, ALongSilenceStartsItOver) {
  DrainRate rate;
  measure(rate, 0, 0);
  measure(rate, 100, 10);
  measure(rate, 5000, 11);  // one in five seconds: neither 100 nor 0.2 a second is right now
  EXPECT_EQ(rate.per_second(after_ms(5000)), 0.0);
  measure(rate, 5100, 31);
  EXPECT_DOUBLE_EQ(rate.per_second(after_ms(5100)), 200.0);
}

TEST(DrainRate, CapacityIsKnownOnlyWhileSomebodyWaits) {
  DrainRate rate;
  measure(rate, 0, 0, true);
  measure(rate, 100, 10, true);
  EXPECT_DOUBLE_EQ(rate.capacity(after_ms(100)), 100.0);
  measure(rate, 200, 11, false);  // one came, one was served: the capacity may be a thousand
  EXPECT_EQ(rate.capacity(after_ms(200)), 0.0);
  EXPECT_GT(rate.per_second(after_ms(200)), 0.0);
  measure(rate, 300, 31, true);
  EXPECT_DOUBLE_EQ(rate.capacity(after_ms(300)), 200.0);
  EXPECT_EQ(rate.capacity(after_ms(1301)), 0.0);
}

TEST(DrainRate, AStallSaysNothingAboutCapacity) {
  DrainRate rate;
  measure(rate, 0, 0, true);
  measure(rate, 100, 10, true);
  measure(rate, 500, 12, true);  // no measurement for 400 ms: the process was stalled
  EXPECT_EQ(rate.capacity(after_ms(500)), 0.0);
}

TEST(DrainRate, CountsOnlyWhenAMeasurementIsDue) {
  DrainRate rate;
  int counted = 0;
  const auto count = [&counted] { return static_cast<std::uint64_t>(++counted); };
  for (int ms = 0; ms < 100; ++ms) rate.refresh(after_ms(ms), count, nobody);
  EXPECT_EQ(counted, 1);
  rate.refresh(after_ms(50), count, nobody);  // a thread with an older clock reading
  EXPECT_EQ(counted, 1);
  rate.refresh(after_ms(100), count, nobody);
  EXPECT_EQ(counted, 2);
}

TEST(DrainRate, OneThreadMeasuresForAll) {
  constexpr int kSpans = rounds(2000);
  DrainRate rate;
  std::atomic<int> measured{0};
  std::barrier next(4);
  run_together(4, [&](std::size_t) {
    for (int s = 1; s <= kSpans; ++s) {
      next.arrive_and_wait();
      rate.refresh(
          after_ms(100 * s),
          [&measured] {
            measured.fetch_add(1);
            return std::uint64_t{1};
          },
          nobody);
    }
  });
  EXPECT_EQ(measured.load(), kSpans);
}

}  // namespace
}  // namespace weir::inline v0::inline control
