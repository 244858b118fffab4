// The tests named Seed… are those that the first description of hedging asks for.
#include "control/latency_tracker.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using policy::DelayBasis;
using policy::HedgeConfig;
using std::chrono::milliseconds;
using std::chrono::seconds;

void record_answers(LatencyTracker& tracker, int count, Duration latency, TimePoint at = kStart) {
  for (int i = 0; i < count; ++i) tracker.record({latency, AttemptEnd::kAnswered}, at);
}

TEST(LatencyTracker, SeedDefaultDelayNoData) {
  LatencyTracker tracker;
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, HedgeConfig{}.default_delay);
}

TEST(LatencyTracker, SeedNeedsMinimumSamples) {
  LatencyTracker tracker;
  record_answers(tracker, 5, milliseconds(2));
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, HedgeConfig{}.default_delay);
  EXPECT_EQ(tracker.hedge_delay(kStart).basis, DelayBasis::kDefault);
}

TEST(LatencyTracker, SeedAdaptsAfterEnoughSamples) {
  LatencyTracker tracker;
  record_answers(tracker, 20, milliseconds(2));
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, milliseconds(2));
  EXPECT_EQ(tracker.hedge_delay(kStart).basis, DelayBasis::kMean);
}

TEST(LatencyTracker, SeedOutlierRaisesDelay) {
  LatencyTracker tracker;
  record_answers(tracker, 15, milliseconds(2));
  const Duration before = tracker.hedge_delay(kStart).delay;
  record_answers(tracker, 1, milliseconds(100));
  EXPECT_GT(tracker.hedge_delay(kStart).delay, before);
}

TEST(LatencyTracker, SeedDelayClampedToMax) {
  HedgeConfig config;
  config.alpha = 0.5;
  LatencyTracker tracker(config);
  record_answers(tracker, 20, milliseconds(200));
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, config.max_delay);
}

TEST(LatencyTracker, SeedPerPeerIsolation) {
  LatencyTracker fast;
  LatencyTracker slow;
  for (int i = 0; i < 20; ++i) {
    record_answers(fast, 1, milliseconds(2));
    record_answers(slow, 1, milliseconds(50));
  }
  EXPECT_EQ(fast.hedge_delay(kStart).delay, milliseconds(2));
  EXPECT_EQ(slow.hedge_delay(kStart).delay, milliseconds(50));
}

TEST(LatencyTracker, OneOutlierAmongManyDoesNotMoveTheQuantile) {
  // With mean and deviation one answer of 100 ms after steady 2 ms kept the delay high for 70 more.
  LatencyTracker tracker;
  record_answers(tracker, 200, milliseconds(2));
  record_answers(tracker, 1, milliseconds(100));
  const policy::HedgeDelay delay = tracker.hedge_delay(kStart);
  EXPECT_EQ(delay.basis, DelayBasis::kQuantile);
  EXPECT_NEAR(to_millis(delay.delay), 2, 0.08);
}

TEST(LatencyTracker, TheQuantileFollowsTheSamplesWithinAThirtySecondPart) {
  LatencyTracker tracker;
  Rng rng(1);
  std::vector<double> all;
  for (int i = 0; i < 3000; ++i) {
    const double ms = std::exp2(1 + 4 * rng.unit());
    all.push_back(ms);
    tracker.record({Duration(static_cast<std::int64_t>(ms * 1e6)), AttemptEnd::kAnswered}, kStart);
  }
  std::sort(all.begin(), all.end());
  EXPECT_NEAR(to_millis(tracker.hedge_delay(kStart).delay), all[2850], 0.06 * all[2850]);
  EXPECT_NEAR(to_millis(tracker.reading(kStart).median), all[1500], 0.04 * all[1500]);
  EXPECT_EQ(tracker.reading(kStart).samples, 3000U);
}

TEST(LatencyTracker, ForgetsWhatIsOlderThanTheWindow) {
  LatencyTracker tracker;
  record_answers(tracker, 200, milliseconds(40));
  record_answers(tracker, 50, milliseconds(2), kStart + seconds(16));
  EXPECT_EQ(tracker.reading(kStart + seconds(16)).samples, 250U);
  EXPECT_EQ(tracker.reading(kStart + seconds(30)).samples, 50U);  // the first half is gone
  EXPECT_EQ(tracker.hedge_delay(kStart + seconds(30)).basis, DelayBasis::kMean);
  EXPECT_EQ(tracker.hedge_delay(kStart + seconds(61)).basis, DelayBasis::kDefault);
  record_answers(tracker, 10, milliseconds(3), kStart + seconds(62));
  EXPECT_EQ(tracker.hedge_delay(kStart + seconds(62)).delay, milliseconds(3));  // no old mean
}

TEST(LatencyTracker, AFastErrorIsNotAFastAnswer) {
  LatencyTracker tracker;
  record_answers(tracker, 20, milliseconds(10));
  for (int i = 0; i < 200; ++i) tracker.record({Duration(1000), AttemptEnd::kFailed}, kStart);
  const LatencyReading reading = tracker.reading(kStart);
  EXPECT_EQ(reading.delay.delay, milliseconds(10));
  EXPECT_EQ(reading.samples, 20U);
  EXPECT_GT(reading.error_rate, 0.99);
}

TEST(LatencyTracker, ATimeoutCountsAtItsFullValue) {
  LatencyTracker tracker;
  record_answers(tracker, 20, milliseconds(2));
  tracker.record({milliseconds(300), AttemptEnd::kTimedOut}, kStart);
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, HedgeConfig{}.max_delay);
  EXPECT_NEAR(tracker.reading(kStart).error_rate, 0.1, 1e-9);
}

TEST(LatencyTracker, ALoserRaisesTheDelayAndNeverLowersIt) {
  LatencyTracker tracker;
  record_answers(tracker, 20, milliseconds(10));
  for (int i = 0; i < 100; ++i) tracker.record({milliseconds(1), AttemptEnd::kCancelled}, kStart);
  EXPECT_EQ(tracker.reading(kStart).samples, 20U);
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, milliseconds(10));
  tracker.record({milliseconds(30), AttemptEnd::kCancelled}, kStart);
  EXPECT_GT(tracker.hedge_delay(kStart).delay, milliseconds(10));
  EXPECT_EQ(tracker.reading(kStart).error_rate, 0);  // it is not an error of the endpoint
}

TEST(LatencyTracker, AnEndpointThatAlwaysLosesIsStillLearned) {
  LatencyTracker tracker;
  for (int i = 0; i < 20; ++i) tracker.record({milliseconds(9), AttemptEnd::kCancelled}, kStart);
  EXPECT_GT(tracker.reading(kStart).samples, 0U);
}

TEST(LatencyTracker, CountsThatWouldOverflowKeepTheirProportions) {
  LatencyTracker full;
  record_answers(full, 65'535, milliseconds(2));
  record_answers(full, 1, milliseconds(20));
  EXPECT_EQ(full.reading(kStart).samples, 65'536U);
  record_answers(full, 1, milliseconds(2));
  EXPECT_EQ(full.reading(kStart).samples, 32'768U);
  LatencyTracker tracker;
  Rng rng(2);
  for (int i = 0; i < 400'000; ++i) {
    record_answers(tracker, 1, rng.chance(0.1) ? milliseconds(20) : milliseconds(2));
  }
  EXPECT_GE(tracker.reading(kStart).samples, 32'768U);
  EXPECT_NEAR(to_millis(tracker.hedge_delay(kStart).delay), 20, 0.8);
  EXPECT_NEAR(to_millis(tracker.reading(kStart).median), 2, 0.08);
}

TEST(LatencyTracker, TimeThatRunsBackwardsForgetsNothing) {
  LatencyTracker tracker;
  record_answers(tracker, 12, milliseconds(2), kStart + seconds(10));
  record_answers(tracker, 12, milliseconds(2), kStart);
  EXPECT_EQ(tracker.reading(kStart).samples, 24U);
}

TEST(LatencyTracker, ANewConfigHoldsAtOnce) {
  LatencyTracker tracker;
  record_answers(tracker, 200, milliseconds(20));
  HedgeConfig config;
  config.max_delay = milliseconds(7);
  tracker.set_config(config);
  EXPECT_EQ(tracker.hedge_delay(kStart).delay, milliseconds(7));
}

TEST(LatencyTracker, HasTwoKilobytes) {
  EXPECT_LE(sizeof(LatencyTracker), 2048U);
}

TEST(LatencyTracker, RacingThreadsLoseNoSample) {
  constexpr std::size_t kThreads = 4;
  const int each = rounds(10'000);
  LatencyTracker tracker;
  std::atomic<int> out_of_bounds{0};
  run_together(kThreads, [&](std::size_t t) {
    Rng rng(t + 1);
    for (int i = 0; i < each; ++i) {
      tracker.record(
          {rng.between(Duration(1000), Duration(milliseconds(80))), AttemptEnd::kAnswered},
          kStart + milliseconds(i % 1000));
      const Duration delay = tracker.hedge_delay(kStart + milliseconds(i % 1000)).delay;
      if (delay < HedgeConfig{}.min_delay || delay > HedgeConfig{}.max_delay) ++out_of_bounds;
    }
  });
  EXPECT_EQ(tracker.reading(kStart).samples, kThreads * static_cast<std::size_t>(each));
  EXPECT_EQ(out_of_bounds, 0);
}

}  // namespace
}  // namespace weir::inline v0::inline control
