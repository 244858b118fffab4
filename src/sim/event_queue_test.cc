#include "event_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::sim {
namespace {

TEST(EventQueue, GivesEventsInTimeOrder) {
  EventQueue queue;
  Rng rng(7);
  std::vector<std::int64_t> times;
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t at = rng.between(std::int64_t{0}, std::int64_t{1} << 40);
    times.push_back(at);
    queue.push({time_from_ns(at), 1, static_cast<std::uint32_t>(i), 0});
  }
  std::sort(times.begin(), times.end());
  for (const std::int64_t at : times) {
    EXPECT_EQ(to_ns(queue.next_at()), at);
    EXPECT_EQ(to_ns(queue.pop().at), at);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, EventsOfOneInstantComeInTheOrderTheyWereMade) {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 1000; ++i) queue.push({time_from_ns(42), 255, i, i + 1});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const SimEvent event = queue.pop();
    EXPECT_EQ(event.subject, i);
    EXPECT_EQ(event.token, i + 1);
    EXPECT_EQ(event.kind, 255);
  }
}

TEST(EventQueue, PushingWhilePoppingNeverGoesBackInTime) {
  EventQueue queue;
  Rng rng(1);
  for (std::uint32_t i = 0; i < 100; ++i) queue.push({time_from_ns(i), 0, i, 0});
  std::pair<std::int64_t, std::uint64_t> last{-1, 0};
  for (int i = 0; i < 20000; ++i) {
    const SimEvent event = queue.pop();
    EXPECT_GE(to_ns(event.at), last.first);
    last.first = to_ns(event.at);
    queue.push({event.at + rng.between(Duration(0), Duration(50)), 0, event.subject, 0});
  }
  EXPECT_EQ(queue.size(), 100U);
}

}  // namespace
}  // namespace weir::sim
