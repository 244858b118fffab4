#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/grpc/hedged_channel.h"

#include "hedged_testing.h"

// Budgets, bounds, changes of the set, and the end of a channel.

namespace weir::inline v0::grpc {
namespace {

using ::grpc::StatusCode;
using hedge_testkit::always;
using hedge_testkit::Answers;
using hedge_testkit::bytes_of;
using hedge_testkit::channel_of;
using hedge_testkit::config_of;
using hedge_testkit::eventually;
using hedge_testkit::hedging_after;
using hedge_testkit::kRead;
using hedge_testkit::kWrite;
using hedge_testkit::Replica;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t no_hedge(const HedgedStats& stats, const std::string& reason) {
  for (const auto& [name, count] : stats.no_hedge) {
    if (name == reason) return count;
  }
  return 0;
}

std::string reasons(const HedgedStats& stats) {
  std::string text = std::to_string(stats.hedges) + " hedges";
  for (const auto& [name, count] : stats.no_hedge) {
    if (count > 0) text += ", " + name + " " + std::to_string(count);
  }
  for (const HedgedReplicaStats& replica : stats.replicas) {
    text += "; " + replica.health + " " + std::to_string(replica.sent) + " sent";
  }
  return text;
}

TEST(HedgedBounds, NoMoreHedgesAreSentThanTheBudgetHolds) {
  Replica a(always({.hold = true}));
  Replica b(always({.hold = true}));
  // Long enough for all calls to be written: one that is stuck moves to the other replica, and has
  // then no target left for a hedge.
  HedgedChannelConfig config = hedging_after(milliseconds(200), {&a, &b});
  config.hedge.budget_pct = 0;
  config.hedge.max_budget_tokens = 4;
  HedgedChannel channel = channel_of(config, 2);
  Answers answers;
  constexpr std::size_t kCalls = 20;
  for (std::size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  }
  EXPECT_TRUE(eventually([&] {
    const HedgedStats stats = channel.stats();
    return no_hedge(stats, "budget") + no_hedge(stats, "destination_budget") == kCalls - 4;
  })) << reasons(channel.stats());
  ASSERT_TRUE(eventually([&] { return a.held() + b.held() == kCalls + 4; }));
  EXPECT_EQ(channel.stats().hedges, 4U);
  EXPECT_EQ(channel.stats().budget, 0U);
  a.release();
  b.release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == kCalls; }));
  EXPECT_EQ(a.calls() + b.calls(), static_cast<int>(kCalls) + 4);
}

TEST(HedgedBounds, NothingIsHedgedWhileTheProcessIsOverloaded) {
  std::atomic<bool> overloaded{true};
  Replica a(always({.hold = true}));
  Replica b(always({.hold = true}));
  HedgedChannelConfig config = hedging_after(milliseconds(2), {&a, &b});
  config.overloaded = [&] { return overloaded.load(); };
  HedgedChannel channel = channel_of(config, 2);
  Answers answers;
  ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return no_hedge(channel.stats(), "overload") == 1; }));
  overloaded = false;
  ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return a.held() + b.held() == 3; }));
  a.release();
  b.release();
  ASSERT_TRUE(eventually([&] { return answers.count() == 2; }));
}

TEST(HedgedBounds, OneCallMoreThanMaxInFlightIsRefusedAtOnceWithAReason) {
  Replica one(always({.hold = true}));
  HedgedChannelConfig config = config_of({&one});
  config.max_in_flight = 4;
  HedgedChannel channel = channel_of(config, 1);
  Answers answers;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(channel.send_bytes(kWrite, bytes_of("x"), answers.next()));
  }
  const auto refused = channel.send_bytes(kWrite, bytes_of("x"), answers.next());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error().error_message(),
            "weir: queue_full: max_in_flight (4) calls are under way");
  EXPECT_EQ(channel.stats().refused, 1U);
  one.release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == 4; }));
  EXPECT_TRUE(channel.call_bytes(kWrite, bytes_of("x")).status.ok());
}

TEST(HedgedBounds, AReplicaGetsNoMoreAtOnceThanItsBoundAndAFullQueueRefuses) {
  Replica one(always({.hold = true}));
  HedgedChannelConfig config = config_of({&one});
  config.in_flight_per_replica = 2;
  config.queue_per_replica = 3;
  HedgedChannel channel = channel_of(config, 1);
  Answers answers;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(channel.send_bytes(kWrite, bytes_of("x"), answers.next()));
  }
  ASSERT_TRUE(eventually([&] { return one.held() == 2; }));
  EXPECT_EQ(channel.stats().replicas[0].queued, 3U);
  const HedgedAnswer sixth = channel.call_bytes(kWrite, bytes_of("x"));
  EXPECT_EQ(sixth.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(sixth.attempts, 0U);
  EXPECT_EQ(one.calls(), 2);
  one.release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == 5; }));
  EXPECT_EQ(one.calls(), 5);
}

TEST(HedgedBounds, ReplicasAreReplacedWhileCallsAreUnderWay) {
  Replica old(always({.hold = true}));
  Replica fresh(always({}));
  HedgedChannel channel = channel_of(config_of({&old}), 1);
  Answers answers;
  ASSERT_TRUE(channel.send_bytes(kWrite, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return old.held() == 1; }));
  EXPECT_FALSE(channel.set_replicas({}).empty());
  EXPECT_TRUE(channel.set_replicas({{.target = fresh.target()}}).empty());
  ASSERT_TRUE(channel.wait_connected(1, seconds(10)));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(channel.call_bytes(kWrite, bytes_of("x")).replica, fresh.target());
  }
  old.release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == 1; }));
  EXPECT_EQ(answers.list().front().replica, old.target());
  EXPECT_EQ(old.calls(), 1);
}

TEST(HedgedBounds, ACallIsSentOnlyToReplicasThatItNames) {
  Replica a(always({.hold = true}));
  Replica b(always({.hold = true}));
  Replica c(always({.hold = true}));
  HedgedChannel channel = channel_of(hedging_after(milliseconds(2), {&a, &b, &c}), 3);
  Answers answers;
  const HedgedCallOptions owners{.among = {a.target(), c.target()}};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next(), owners));
  }
  ASSERT_TRUE(eventually([&] { return a.held() + c.held() == 20; }));
  EXPECT_EQ(b.calls(), 0);
  for (Replica* one : {&a, &b, &c}) one->release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == 10; }));
}

TEST(HedgedBounds, CloseCancelsWhatIsUnderWayAndEveryCallbackIsCalledOnce) {
  Replica a(always({.hold = true}));
  Replica b(always({.hold = true}));
  HedgedChannelConfig config = hedging_after(milliseconds(2), {&a, &b});
  config.in_flight_per_replica = 8;  // some wait in the queue
  HedgedChannel channel = channel_of(config, 2);
  Answers answers;
  constexpr std::size_t kCalls = 40;
  for (std::size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  }
  ASSERT_TRUE(eventually([&] { return a.held() + b.held() >= 16; }));
  EXPECT_FALSE(channel.close(Duration(0)));
  EXPECT_EQ(answers.count(StatusCode::CANCELLED), kCalls);
  EXPECT_TRUE(eventually([&] { return a.held() + b.held() == 0; }));
  const auto late = channel.send_bytes(kRead, bytes_of("x"), answers.next());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().error_message(), "weir: closed: the channel was closed");
  EXPECT_EQ(answers.count(), kCalls);
}

TEST(HedgedBounds, CloseWaitsForCallsThatEndInTime) {
  Replica one(always({.hold = true}));
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  Answers answers;
  ASSERT_TRUE(channel.send_bytes(
      kWrite, bytes_of("x"), [&, done = answers.next()](auto answer) { done(std::move(answer)); }));
  ASSERT_TRUE(eventually([&] { return one.held() == 1; }));
  one.release();
  EXPECT_TRUE(channel.close(seconds(30)));
  EXPECT_EQ(answers.count(StatusCode::OK), 1U);
}

}  // namespace
}  // namespace weir::inline v0::grpc
