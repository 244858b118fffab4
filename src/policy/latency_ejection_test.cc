#include "policy/latency_ejection.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

/// Windows of one set of endpoints, closed again and again.
struct Watch {
  explicit Watch(std::size_t size) : windows(size), history(size), scratch(size) {}

  void close(const std::vector<int>& p50_ms, std::uint32_t samples = 100) {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      windows[i] = {.samples = samples, .p50 = milliseconds(p50_ms[i])};
    }
    close_latency_window(windows, history, scratch, {});
  }
  std::vector<std::size_t> outliers() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (history[i].outlier()) found.push_back(i);
    }
    return found;
  }

  std::vector<LatencyWindow> windows;
  std::vector<SlowWindows> history;
  std::vector<Duration> scratch;
};

using Found = std::vector<std::size_t>;

TEST(LatencyEjection, TwoSlowWindowsOfThreeMakeAnOutlier) {
  Watch watch(3);
  watch.close({5, 5, 105});
  EXPECT_EQ(watch.outliers(), Found{});
  watch.close({5, 5, 5});
  watch.close({5, 5, 105});
  EXPECT_EQ(watch.outliers(), Found{2});
  watch.close({5, 5, 5});
  EXPECT_EQ(watch.outliers(), Found{});
}

TEST(LatencyEjection, RatioAndMarginMustBothBeExceeded) {
  struct Row {
    int others;
    int own;
    bool slow;
  };
  const Row rows[] = {{5, 25, false},    {5, 26, true},    {1, 21, false},  {1, 22, true},
                      {100, 300, false}, {100, 301, true}, {10, 30, false}, {10, 31, true}};
  for (const Row& row : rows) {
    Watch watch(3);
    watch.close({row.others, row.own, row.others});
    EXPECT_EQ(watch.history[1].bits != 0, row.slow) << row.others << " and " << row.own;
  }
}

TEST(LatencyEjection, WhenAllAreSlowNoneIsAnOutlier) {
  Watch watch(5);
  for (int i = 0; i < 5; ++i) watch.close({900, 1000, 1100, 950, 1050});
  EXPECT_EQ(watch.outliers(), Found{});
}

TEST(LatencyEjection, TooFewSamplesSayNothing) {
  Watch watch(3);
  for (int i = 0; i < 3; ++i) watch.close({5, 5, 105}, 19);
  EXPECT_EQ(watch.outliers(), Found{});
  for (int i = 0; i < 3; ++i) watch.close({5, 5, 105}, 20);
  EXPECT_EQ(watch.outliers(), Found{2});
}

TEST(LatencyEjection, EndpointsWithFewSamplesAreNotCompared) {
  Watch watch(4);
  for (int i = 0; i < 3; ++i) {
    watch.windows = {{100, milliseconds(100)},
                     {100, milliseconds(110)},
                     {3, milliseconds(1)},
                     {0, Duration::zero()}};
    close_latency_window(watch.windows, watch.history, watch.scratch, {});
  }
  EXPECT_EQ(watch.outliers(), Found{});
}

TEST(LatencyEjection, OneAloneIsNeverAnOutlier) {
  Watch watch(1);
  for (int i = 0; i < 3; ++i) watch.close({10'000});
  EXPECT_EQ(watch.outliers(), Found{});
}

TEST(LatencyEjection, TheMedianIsThatOfTheOthers) {
  // Of two, each is compared with the other alone.
  Watch two(2);
  for (int i = 0; i < 2; ++i) two.close({5, 105});
  EXPECT_EQ(two.outliers(), Found{1});
  // Two slow ones of three: the others of each are 5 and 100, whose median is 52.5.
  Watch three(3);
  for (int i = 0; i < 2; ++i) three.close({5, 100, 100});
  EXPECT_EQ(three.outliers(), Found{});
}

TEST(LatencyEjection, AtMostTheHalfIsMarkedWhateverTheLatencies) {
  Rng rng(9);
  for (int run = 0; run < 2000; ++run) {
    const std::size_t size = 1 + rng.below(12);
    Watch watch(size);
    std::vector<int> p50(size);
    for (int& ms : p50) ms = static_cast<int>(rng.chance(0.5) ? rng.below(10) : rng.below(2000));
    for (int i = 0; i < 3; ++i) watch.close(p50);
    EXPECT_LE(2 * watch.outliers().size(), size);
  }
}

TEST(LatencyEjection, CountsFollowTheTable) {
  struct Row {
    EjectionCounts counts;
    bool allowed;
  };
  const Row rows[] = {
      {{.endpoints = 1, .available = 1}, false},
      {{.endpoints = 2, .available = 2}, true},
      {{.endpoints = 3, .available = 3}, true},
      {{.endpoints = 3, .available = 2, .ejected_by_latency = 1}, false},
      {{.endpoints = 3, .available = 2}, false},  // one is down: another would leave a third
      {{.endpoints = 11, .available = 11}, true},
      {{.endpoints = 11, .available = 10, .ejected_by_latency = 1}, false},
      {{.endpoints = 20, .available = 19, .ejected_by_latency = 1}, true},
      {{.endpoints = 20, .available = 18, .ejected_by_latency = 2}, false},
      {{.endpoints = 20, .available = 11}, true},
      {{.endpoints = 20, .available = 10}, false},
      {{.endpoints = 0, .available = 0}, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(may_eject_slow(row.counts, {}), row.allowed)
        << row.counts.available << " of " << row.counts.endpoints;
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
