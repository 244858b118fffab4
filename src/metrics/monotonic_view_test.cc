#include "weir/experimental/metrics/monotonic_view.h"

#include <barrier>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::metrics {
namespace {

TEST(MonotonicView, HoldsTheLastValueWhenAReadingFalls) {
  MonotonicView view;
  EXPECT_EQ(view.publish(5), 5U);
  EXPECT_EQ(view.publish(4), 5U);
  EXPECT_EQ(view.publish(5), 5U);
  EXPECT_EQ(view.publish(9), 9U);
}

TEST(MonotonicView, ContinuesAfterItsSourceWasReplaced) {
  MonotonicView view;
  view.publish(100);
  view.source_replaced();
  EXPECT_EQ(view.publish(0), 100U);
  EXPECT_EQ(view.publish(7), 107U);
}

TEST(MonotonicView, NeverGoesBackwardsForAnyReader) {
  MonotonicView view;
  constexpr int kThreads = 4;
  constexpr std::uint64_t kReadings = 20000;
  std::barrier start(kThreads);
  std::vector<int> falls(kThreads, 0);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      std::uint64_t last = 0;
      for (std::uint64_t i = 0; i < kReadings; ++i) {
        const std::uint64_t seen = view.publish(i ^ static_cast<std::uint64_t>(t));
        if (seen < last) ++falls[static_cast<std::size_t>(t)];
        last = seen;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(falls, std::vector<int>(kThreads, 0));
  EXPECT_EQ(view.last(), (kReadings - 1) ^ 0U);
}

}  // namespace
}  // namespace weir::metrics
