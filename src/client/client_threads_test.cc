#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "client_testing.h"

// Many threads, one client: every request ends exactly once, and the counts agree.

namespace weir::inline v0::inline client::testkit {
namespace {

using std::chrono::seconds;

struct Counts {
  std::atomic<int> answered{0};
  std::atomic<int> failed{0};
  std::atomic<int> refused{0};
};

TEST(ClientThreads, TwoThreadsAndTwoLoopsLoseNothing) {
  for (const char* scheme : kSchemes) {
    const Replica a([](const Asked& asked) { return Reply{.body = asked.path}; });
    const Replica b([](const Asked& asked) { return Reply{.body = asked.path}; });
    ClientConfig config = config_for({&a, &b}, scheme);
    config.loops = 2;
    config.max_in_flight = 16;
    config.queue_max = 64;
    config.hedge.enabled = false;  // each request is counted once
    Client client = client_of(config);
    constexpr int kEach = 400;
    std::atomic<int> right{0};
    std::barrier together(2);
    const auto ask = [&](int thread) {
      together.arrive_and_wait();
      for (int i = 0; i < kEach; ++i) {
        const std::string path = "/" + std::to_string(thread) + "/" + std::to_string(i);
        const Client::Answer answer = client.get(path);
        if (answer && answer->body == path) ++right;
      }
    };
    std::thread other(ask, 1);
    ask(2);
    other.join();
    EXPECT_EQ(right, 2 * kEach) << scheme;
    EXPECT_EQ(a.requests() + b.requests(), 2 * kEach);
    const ClientStats stats = client.stats();
    EXPECT_EQ(stats.sent, 2U * kEach);
    EXPECT_EQ(stats.answered, 2U * kEach);
    EXPECT_EQ(stats.failed, 0U);
    EXPECT_EQ(stats.places, 0U);
  }
}

TEST(ClientThreads, EveryRequestEndsOnceWhileOthersAreRefusedAndTheClientCloses) {
  const Replica replica(always({}));
  ClientConfig config = config_for({&replica});
  config.loops = 2;
  config.max_in_flight = 4;
  config.queue_max = 8;
  Client client = client_of(config);
  Counts counts;
  std::atomic<int> accepted{0};
  std::atomic<bool> closed{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!closed) {
        const auto sent = client.send(
            {}, [&](Client::Answer answer) { ++(answer ? counts.answered : counts.failed); });
        ++(sent ? accepted : counts.refused);
        if (!sent && sent.error().kind == ClientErrorKind::kClosed) closed = true;
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return counts.answered > 500 && counts.refused > 0; }));
  static_cast<void>(client.close(Duration(0)));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts.answered + counts.failed, accepted);
  const ClientStats stats = client.stats();
  EXPECT_EQ(stats.sent, static_cast<std::uint64_t>(accepted));
  EXPECT_EQ(stats.answered, static_cast<std::uint64_t>(counts.answered));
  EXPECT_EQ(stats.failed, static_cast<std::uint64_t>(counts.failed));
  EXPECT_EQ(stats.refused, static_cast<std::uint64_t>(counts.refused));
}

}  // namespace
}  // namespace weir::inline v0::inline client::testkit
