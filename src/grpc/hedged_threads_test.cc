#include <atomic>
#include <barrier>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/grpc/hedged_channel.h"

#include "hedged_testing.h"

// Many threads use one channel; the counts of both sides agree.

namespace weir::inline v0::grpc {
namespace {

using hedge_testkit::Asked;
using hedge_testkit::bytes_of;
using hedge_testkit::channel_of;
using hedge_testkit::eventually;
using hedge_testkit::hedging_after;
using hedge_testkit::kRead;
using hedge_testkit::kWrite;
using hedge_testkit::Replica;
using hedge_testkit::Reply;
using std::chrono::milliseconds;

constexpr int kThreads = 8;
constexpr int kCallsPerThread = 60;

/// Fails every 20th call and echoes all others.
class SometimesFails {
 public:
  [[nodiscard]] Replica::Decide decide() {
    return [this](const Asked& asked) {
      const bool fails = asked.method == kRead && arrived_.fetch_add(1) % 20 == 19;
      if (fails) return Reply{.status = {::grpc::StatusCode::INTERNAL, "now and then"}};
      return Reply{.body = asked.body};
    };
  }

 private:
  std::atomic<int> arrived_{0};
};

TEST(HedgedThreads, EveryCallOfEveryThreadEndsOnceWithItsOwnAnswer) {
  SometimesFails fails;
  Replica a(fails.decide());
  Replica b(fails.decide());
  Replica c(fails.decide());
  HedgedChannelConfig config = hedging_after(milliseconds(20), {&a, &b, &c});
  config.threads = 2;
  HedgedChannel channel = channel_of(config, 3);
  std::atomic<int> answered{0};
  std::atomic<int> good{0};
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kCallsPerThread; ++i) {
        const std::string text = std::to_string(t) + "-" + std::to_string(i);
        const auto judge = [&, text](const HedgedAnswer& answer) {
          const bool own = hedge_testkit::text_of(answer.response) == text;
          good += answer.status.ok() && own ? 1 : 0;
          ++answered;
        };
        const char* method = i % 4 == 0 ? kWrite : kRead;
        if (i % 2 == 0) {
          judge(channel.call_bytes(method, bytes_of(text)));
        } else {
          ASSERT_TRUE(channel.send_bytes(method, bytes_of(text), judge));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  constexpr int kCalls = kThreads * kCallsPerThread;
  ASSERT_TRUE(eventually([&] { return answered.load() == kCalls; }));
  EXPECT_EQ(good.load(), kCalls);
  EXPECT_TRUE(channel.close(std::chrono::seconds(10)));
  const HedgedStats stats = channel.stats();
  EXPECT_EQ(stats.calls, static_cast<std::uint64_t>(kCalls));
  EXPECT_EQ(stats.answered, stats.calls);
  // What was written and cancelled at once may not have reached its handler.
  const auto seen = static_cast<std::uint64_t>(a.calls() + b.calls() + c.calls());
  EXPECT_GE(stats.attempts, seen);
  EXPECT_LE(stats.attempts, seen + stats.hedges);
  EXPECT_LE(stats.hedges + stats.retries, config.hedge.max_budget_tokens + stats.calls / 10);
  EXPECT_EQ(answered.load(), kCalls);
}

TEST(HedgedThreads, AChannelIsClosedWhileThreadsCallIt) {
  Replica a([](const Asked&) { return Reply{}; });
  Replica b([](const Asked&) { return Reply{}; });
  HedgedChannel channel = channel_of(hedging_after(milliseconds(1), {&a, &b}), 2);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (channel.call_bytes(kRead, bytes_of("x")).status.ok()) ++good;
    });
  }
  EXPECT_TRUE(eventually([&] { return good.load() >= 100; }));
  channel.close(Duration(0));
  for (std::thread& thread : threads) thread.join();  // each ended with an error
  const HedgedStats stats = channel.stats();
  EXPECT_EQ(stats.in_flight, 0U);
  EXPECT_EQ(stats.calls, stats.answered + stats.failed + stats.cancelled);
}

}  // namespace
}  // namespace weir::inline v0::grpc
