// How finished requests are collected into windows, on one thread and on many.
#include "sample_window.h"

#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class SampleWindowTest : public ::testing::Test {
 protected:
  // A window that opened at kStart.
  SampleWindowTest() {
    window.set_rules({.duration = seconds(1), .duration_min = milliseconds(100)});
    static_cast<void>(window.close(kStart, 0));
  }
  void finish(Duration latency, TimePoint at) {
    static_cast<void>(window.record(at - latency, at));
  }

  std::unique_ptr<ScopeCounterSlots> counters = std::make_unique<ScopeCounterSlots>();
  SampleWindow window{*counters};
};

TEST(SampleWindow, TheFirstLookOpensTheFirstWindow) {
  const auto counters = std::make_unique<ScopeCounterSlots>();
  SampleWindow window(*counters);
  EXPECT_TRUE(window.is_due(kStart));
  EXPECT_TRUE(window.record(kStart, after_ms(1)));  // is_due() should be checked
  EXPECT_EQ(window.close(after_ms(1), 0).opened_at, TimePoint{});
  EXPECT_FALSE(window.is_due(after_ms(2)));
  EXPECT_EQ(window.close(after_ms(1001), 0).opened_at, after_ms(1));
}

TEST_F(SampleWindowTest, CountsWhoLeftAmongTheSamples) {
  finish(milliseconds(4), after_ms(10));
  static_cast<void>(window.record(after_ms(10), after_ms(30), true));
  window.ignore_before(after_ms(40));
  static_cast<void>(window.record(after_ms(10), after_ms(50), true));  // left out, abandoned too
  const LimitSample sample = window.close(after_ms(1000), 0);
  EXPECT_EQ(sample.sample_count, 2U);
  EXPECT_EQ(sample.abandoned_count, 1U);
  EXPECT_EQ(sample.latency_avg, milliseconds(12));
  EXPECT_EQ(window.close(after_ms(2000), 0).abandoned_count, 0U) << "of each window its own";
}

TEST_F(SampleWindowTest, ClosesByTime) {
  EXPECT_FALSE(window.is_due(after_ms(999)));
  EXPECT_TRUE(window.is_due(after_ms(1000)));
  finish(milliseconds(4), after_ms(10));
  finish(milliseconds(8), after_ms(20));
  const LimitSample sample = window.close(after_ms(1000), 3);
  EXPECT_EQ(sample.opened_at, kStart);
  EXPECT_EQ(sample.closed_at, after_ms(1000));
  EXPECT_EQ(sample.sample_count, 2U);
  EXPECT_EQ(sample.latency_avg, milliseconds(6));
  EXPECT_EQ(sample.in_flight, 3U);
  EXPECT_FALSE(window.is_due(after_ms(1999)));
  EXPECT_TRUE(window.is_due(after_ms(2000)));
}

TEST_F(SampleWindowTest, ClosesEarlyByCountButNotBeforeTheLeastDuration) {
  window.set_rules(
      {.duration = seconds(1), .duration_min = milliseconds(100), .early_close_samples = 50});
  for (int i = 0; i < 49; ++i) finish(milliseconds(1), after_ms(10));
  EXPECT_FALSE(window.is_due(after_ms(500)));
  finish(milliseconds(1), after_ms(10));
  EXPECT_FALSE(window.is_due(after_ms(99)));
  EXPECT_TRUE(window.is_due(after_ms(100)));
  EXPECT_EQ(window.close(after_ms(100), 0).sample_count, 50U);
  EXPECT_FALSE(window.is_due(after_ms(300)));  // the next one counts from zero
}

TEST_F(SampleWindowTest, RecordSaysWhenALookIsWorthIt) {
  int worth = 0;
  for (int i = 0; i < 160; ++i) worth += window.record(kStart, after_ms(1)) ? 1 : 0;
  EXPECT_EQ(worth, 10);                                // every 16th sample, for the early close
  EXPECT_TRUE(window.record(kStart, after_ms(1000)));  // and when the time is over
}

TEST_F(SampleWindowTest, AnEmptyWindowHasNoLatency) {
  const LimitSample sample = window.close(after_ms(1000), 7);
  EXPECT_EQ(sample.sample_count, 0U);
  EXPECT_EQ(sample.latency_avg, Duration(0));
  EXPECT_EQ(sample.latency_min, Duration(0));
  EXPECT_EQ(sample.latency_p50, Duration(0));
  EXPECT_EQ(sample.in_flight, 7U);
}

TEST_F(SampleWindowTest, PercentilesAreWithinFourPercent) {
  for (int i = 1; i <= 1000; ++i) finish(microseconds(100 * i), after_ms(500));
  const LimitSample sample = window.close(after_ms(1000), 0);
  EXPECT_NEAR(to_millis(sample.latency_min), 0.1, 0.004);
  EXPECT_NEAR(to_millis(sample.latency_p10), 10.0, 0.4);
  EXPECT_NEAR(to_millis(sample.latency_p50), 50.0, 2.0);
  EXPECT_NEAR(to_millis(sample.latency_p90), 90.0, 3.6);
  EXPECT_NEAR(to_millis(sample.latency_avg), 50.05, 1e-6);  // the average is exact
}

TEST_F(SampleWindowTest, AWindowHoldsOnlyItsOwnSamples) {
  finish(milliseconds(100), after_ms(10));
  static_cast<void>(window.close(after_ms(1000), 0));
  finish(milliseconds(2), after_ms(1500));
  const LimitSample sample = window.close(after_ms(2000), 0);
  EXPECT_EQ(sample.sample_count, 1U);
  EXPECT_EQ(sample.latency_avg, milliseconds(2));
  EXPECT_NEAR(to_millis(sample.latency_p90), 2.0, 0.08);
}

TEST_F(SampleWindowTest, RequestsGrantedBeforeTheGivenInstantAreLeftOut) {
  window.ignore_before(after_ms(50));
  EXPECT_FALSE(window.record(after_ms(49), after_ms(60)));
  EXPECT_EQ(window.close(after_ms(1000), 0).sample_count, 0U);
  static_cast<void>(window.record(after_ms(50), after_ms(60)));
  EXPECT_EQ(window.close(after_ms(2000), 0).sample_count, 1U);
}

TEST_F(SampleWindowTest, ALatencyThatTheClockMakesNegativeCountsAsTheSmallest) {
  finish(milliseconds(-3), after_ms(10));
  const LimitSample sample = window.close(after_ms(1000), 0);
  EXPECT_EQ(sample.sample_count, 1U);
  EXPECT_EQ(sample.latency_avg, Duration(1));
}

TEST_F(SampleWindowTest, RemembersThePeakInFlightOfThisWindowOnly) {
  window.note_in_flight(3);
  window.note_in_flight(9);
  window.note_in_flight(5);
  EXPECT_EQ(window.close(after_ms(1000), 4).in_flight_max, 9U);
  EXPECT_EQ(window.close(after_ms(2000), 2).in_flight_max, 4U);  // it started with four
  EXPECT_EQ(window.close(after_ms(3000), 2).in_flight_max, 2U);
}

TEST_F(SampleWindowTest, CountsOverloadsAndRefusalsOfThisWindow) {
  for (int i = 0; i < 3; ++i) counters->add(&ScopeCounters::overloads);
  for (int i = 0; i < 5; ++i) counters->add(&ScopeCounters::limit_hits);
  const LimitSample first = window.close(after_ms(1000), 0);
  EXPECT_EQ(first.overload_count, 3U);
  EXPECT_EQ(first.refused_count, 5U);
  const LimitSample second = window.close(after_ms(2000), 0);
  EXPECT_EQ(second.overload_count, 0U);
  EXPECT_EQ(second.refused_count, 0U);
}

// Threads on all slots (and on the shared one) record while one thread closes windows: no sample is
// lost or counted twice, and the sums of latencies are equal to the nanosecond.
TEST_F(SampleWindowTest, NoSampleIsLostOrCountedTwiceUnderThreads) {
  constexpr std::size_t kThreads = 40;
  constexpr int kEach = rounds(10'000);
  std::atomic<std::size_t> running{kThreads};
  std::uint64_t closed_samples = 0;
  std::uint64_t windows = 0;
  const auto close_one = [&] {
    ++windows;
    closed_samples +=
        window.close(after_ms(static_cast<std::int64_t>(1000 * windows)), 0).sample_count;
  };
  {
    std::jthread closer([&] {
      while (running.load() > 0) {
        close_one();
        std::this_thread::yield();
      }
    });
    run_together(kThreads, [&](std::size_t t) {
      const Duration latency = microseconds(100 + static_cast<int>(t));
      for (int i = 0; i < kEach; ++i) finish(latency, after_ms(i));
      running.fetch_sub(1);
    });
  }
  close_one();
  EXPECT_EQ(closed_samples, kThreads * kEach);
  const auto per_round = static_cast<std::uint64_t>(kThreads * 100'000 + 1000 * (39 * 40 / 2));
  EXPECT_EQ(counters->sum(&ScopeCounters::latency_ns), per_round * kEach);
}

}  // namespace
}  // namespace weir::inline v0::inline control
