#include "weir/base/striped_counter.h"

#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(StripedCounter, StartsAtZeroAndAddsBothWays) {
  StripedCounter counter;
  EXPECT_EQ(counter.sum(), 0);
  counter.add(5);
  counter.add(-7);
  EXPECT_EQ(counter.sum(), -2);
}

TEST(StripedCounter, IsExactOnceTheAddersStopped) {
  constexpr int kThreads = 24;  // more than stripes: some share one
  constexpr int kAdds = 20'000;
  StripedCounter counter;
  StripedCounter balanced;
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&counter, &balanced, &start, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kAdds; ++i) {
        counter.add(t);
        balanced.add(i % 2 == 0 ? 1 : -1);
      }
    });
  }
  threads.clear();  // joins
  EXPECT_EQ(counter.sum(), std::int64_t{kAdds} * (kThreads * (kThreads - 1) / 2));
  EXPECT_EQ(balanced.sum(), 0);
}

TEST(StripedCounter, SumNeverRunsAheadOfTheAdders) {
  constexpr int kAdds = 50'000;
  StripedCounter counter;
  std::barrier start(2);
  std::jthread adder([&counter, &start] {
    start.arrive_and_wait();
    for (int i = 0; i < kAdds; ++i) counter.add(1);
  });
  start.arrive_and_wait();
  std::int64_t last = 0;
  while (last < kAdds) {
    const std::int64_t seen = counter.sum();
    ASSERT_GE(seen, last);  // one adder, one stripe: readers see it grow
    ASSERT_LE(seen, kAdds);
    last = seen;
  }
}

TEST(StripedCounter, CountersDoNotShareStripes) {
  StripedCounter a;
  StripedCounter b;
  a.add(1);
  EXPECT_EQ(b.sum(), 0);
}

}  // namespace
}  // namespace weir
