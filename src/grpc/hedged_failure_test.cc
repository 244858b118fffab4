#include <atomic>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/experimental/grpc/hedged_channel.h"

#include "hedged_testing.h"

// Replicas that fail, are dead, are silent or have no free stream.

namespace weir::inline v0::grpc {
namespace {

using ::grpc::StatusCode;
using hedge_testkit::always;
using hedge_testkit::Answers;
using hedge_testkit::Asked;
using hedge_testkit::bytes_of;
using hedge_testkit::channel_of;
using hedge_testkit::config_of;
using hedge_testkit::eventually;
using hedge_testkit::hedging_after;
using hedge_testkit::kIdempotentWrite;
using hedge_testkit::kRead;
using hedge_testkit::kWrite;
using hedge_testkit::Replica;
using hedge_testkit::Reply;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A port that is bound; with `listens`, the kernel accepts connections and nobody reads from them,
/// as with a process that is stopped.
class BoundPort {
 public:
  explicit BoundPort(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, raw, size), 0);
    EXPECT_EQ(::getsockname(socket_, raw, &size), 0);
    if (listens) {
      EXPECT_EQ(::listen(socket_, 64), 0);
    }
    port_ = ntohs(address.sin_port);
  }
  BoundPort(const BoundPort&) = delete;
  BoundPort& operator=(const BoundPort&) = delete;
  ~BoundPort() { ::close(socket_); }
  [[nodiscard]] std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

/// Answers the calls of all its replicas by the order of their arrival.
class InOrder {
 public:
  explicit InOrder(std::vector<Reply> replies) : replies_(std::move(replies)) {}
  [[nodiscard]] Replica::Decide decide() {
    return [this](const Asked&) {
      const std::size_t n = arrived_.fetch_add(1);
      return n < replies_.size() ? replies_[n] : Reply{};
    };
  }

 private:
  const std::vector<Reply> replies_;
  std::atomic<std::size_t> arrived_{0};
};

Reply failing(StatusCode code, const std::string& message) {
  return {.status = {code, message}};
}

/// Calls of every kind are answered although one of two replicas is not there.
void expect_answers_beside(const std::string& absent) {
  Replica live(always({}));
  HedgedChannelConfig config = hedging_after(seconds(20), {&live});  // no hedge helps
  config.replicas.insert(config.replicas.begin(), {.target = absent});
  auto channel = HedgedChannel::create(config);  // not connected yet
  ASSERT_TRUE(channel);
  Answers answers;
  constexpr std::size_t kEarly = 10;
  for (std::size_t i = 0; i < kEarly; ++i) {
    ASSERT_TRUE(channel->send_bytes(i % 2 == 0 ? kRead : kWrite, bytes_of("x"), answers.next()));
  }
  ASSERT_TRUE(eventually([&] { return answers.count() == kEarly; }));
  EXPECT_EQ(answers.count(StatusCode::OK), kEarly);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(channel->call_bytes(kWrite, bytes_of("x")).status.ok());
  }
  EXPECT_EQ(live.calls(), static_cast<int>(kEarly) + 20);
  EXPECT_EQ(channel->stats().hedges, 0U);
}

TEST(HedgedFailure, NoCallWaitsForAReplicaThatRefusesConnections) {
  const BoundPort dead(false);
  expect_answers_beside(dead.target());
}

TEST(HedgedFailure, NoCallWaitsForAReplicaThatAcceptsConnectionsAndIsSilent) {
  const BoundPort stopped(true);
  expect_answers_beside(stopped.target());
}

TEST(HedgedFailure, WithoutAnyConnectionACallFailsBeforeItsDeadline) {
  const BoundPort dead(false);
  HedgedChannelConfig config = config_of({});
  config.replicas = {{.target = dead.target()}};
  auto channel = HedgedChannel::create(config);
  ASSERT_TRUE(channel);
  const HedgedAnswer answer = channel->call_bytes(kRead, bytes_of("x"));
  EXPECT_EQ(answer.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(answer.attempts, 0U);
  EXPECT_EQ(channel->stats().failed, 1U);
}

TEST(HedgedFailure, AReplicaThatComesBackIsUsedAgain) {
  auto first = std::make_unique<Replica>(always({}));
  const std::string target = first->target();
  HedgedChannel channel = channel_of(config_of({first.get()}), 1);
  EXPECT_TRUE(channel.call_bytes(kRead, bytes_of("x")).status.ok());
  first.reset();
  ASSERT_TRUE(eventually([&] { return !channel.stats().replicas[0].connected; }));
  Replica again(always({}), 1000, target);
  ASSERT_TRUE(channel.wait_connected(1, seconds(10)));
  EXPECT_TRUE(channel.call_bytes(kRead, bytes_of("x")).status.ok());
}

TEST(HedgedFailure, AFailedReadGoesToAnotherReplicaAtOnce) {
  InOrder replies({failing(StatusCode::INTERNAL, "first")});
  Replica a(replies.decide());
  Replica b(replies.decide());
  HedgedChannel channel = channel_of(hedging_after(seconds(20), {&a, &b}), 2);
  const HedgedAnswer answer = channel.call_bytes(kRead, bytes_of("x"));
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.attempts, 2U);
  EXPECT_FALSE(answer.hedged);
  EXPECT_EQ(a.calls(), 1);
  EXPECT_EQ(b.calls(), 1);
  EXPECT_EQ(channel.stats().retries, 1U);
}

TEST(HedgedFailure, AFailedHedgeDoesNotEndTheCall) {
  InOrder replies({Reply{.body = "primary", .hold = true}, failing(StatusCode::INTERNAL, "hedge")});
  Replica a(replies.decide());
  Replica b(replies.decide());
  HedgedChannelConfig config = hedging_after(milliseconds(5), {&a, &b});
  config.hedge.max_budget_tokens = 1;  // for the hedge, and no other attempt
  config.hedge.budget_pct = 0;
  HedgedChannel channel = channel_of(config, 2);
  Answers answers;
  ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return a.calls() + b.calls() == 2; }));
  EXPECT_EQ(answers.count(), 0U);
  a.release();
  b.release();
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  const HedgedAnswer answer = answers.list().front();
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(hedge_testkit::text_of(answer.response), "primary");
  EXPECT_TRUE(answer.hedged);
  EXPECT_FALSE(answer.hedge_won);
  EXPECT_EQ(channel.stats().hedges_lost, 1U);
}

TEST(HedgedFailure, IfAllAttemptsFailTheErrorOfThePrimaryIsReported) {
  InOrder replies({Reply{.status = {StatusCode::DATA_LOSS, "primary"}, .hold = true},
                   failing(StatusCode::INTERNAL, "hedge")});
  Replica a(replies.decide());
  Replica b(replies.decide());
  HedgedChannelConfig config = hedging_after(milliseconds(5), {&a, &b});
  config.hedge.max_budget_tokens = 1;
  config.hedge.budget_pct = 0;
  HedgedChannel channel = channel_of(config, 2);
  Answers answers;
  ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return a.calls() + b.calls() == 2; }));
  a.release();
  b.release();
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  EXPECT_EQ(answers.list().front().status.error_code(), StatusCode::DATA_LOSS);
  EXPECT_EQ(answers.list().front().status.error_message(), "primary");
  EXPECT_EQ(channel.stats().hedges_failed, 1U);
}

TEST(HedgedFailure, AnErrorThatEveryReplicaWouldGiveIsTheAnswer) {
  Replica a(always(failing(StatusCode::INVALID_ARGUMENT, "no")));
  Replica b(always(failing(StatusCode::INVALID_ARGUMENT, "no")));
  HedgedChannel channel = channel_of(hedging_after(seconds(20), {&a, &b}), 2);
  const HedgedAnswer answer = channel.call_bytes(kRead, bytes_of("x"));
  EXPECT_EQ(answer.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(a.calls() + b.calls(), 1);
}

TEST(HedgedFailure, WhatMayHaveBeenCarriedOutIsRepeatedOnlyIfTheTableSaysThatItMayBe) {
  for (const auto& [method, calls] : {std::pair{kWrite, 1}, std::pair{kIdempotentWrite, 2}}) {
    InOrder replies({failing(StatusCode::UNAVAILABLE, "going down")});
    Replica a(replies.decide());
    Replica b(replies.decide());
    HedgedChannel channel = channel_of(config_of({&a, &b}), 2);
    EXPECT_EQ(channel.call_bytes(method, bytes_of("x")).status.ok(), calls == 2) << method;
    EXPECT_EQ(a.calls() + b.calls(), calls) << method;
  }
}

TEST(HedgedFailure, ACallThatGetsNoStreamMovesToAnotherReplicaAndIsCarriedOutOnce) {
  Replica a(always({.hold = true}), 1);
  Replica b(always({}));
  HedgedChannelConfig config = hedging_after(seconds(20), {&a, &b});
  config.replicas[1].draining = true;
  HedgedChannel channel = channel_of(config, 2);
  Answers answers;
  ASSERT_TRUE(channel.send_bytes(kWrite, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return a.held() == 1; }));
  ASSERT_TRUE(channel.send_bytes(kWrite, bytes_of("x"), answers.next()));
  config.replicas[1].draining = false;
  config.replicas[0].draining = true;
  EXPECT_TRUE(channel.set_replicas(config.replicas).empty());
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  EXPECT_EQ(answers.list().front().replica, b.target());
  EXPECT_EQ(channel.stats().moved, 1U);
  EXPECT_EQ(channel.stats().budget, config.hedge.max_budget_tokens);
  a.release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == 2; }));
  EXPECT_EQ(a.calls(), 1);
  EXPECT_EQ(b.calls(), 1);
}

TEST(HedgedFailure, TheWaitForAFreeStreamIsNoLatencyOfTheReplica) {
  constexpr Duration kHeld = milliseconds(400);
  Replica one(always({.hold = true}), 1);
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  Answers answers;
  const TimePoint begin = embed::now();
  constexpr std::size_t kCalls = 21;
  for (std::size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  }
  ASSERT_TRUE(eventually([&] { return one.held() == 1 && embed::now() - begin >= kHeld; }));
  EXPECT_EQ(one.calls(), 1);
  one.release();
  ASSERT_TRUE(eventually([&] { return answers.count(StatusCode::OK) == kCalls; }));
  const HedgedReplicaStats stats = channel.stats().replicas[0];
  EXPECT_GT(stats.median, Duration(0));
  EXPECT_LT(stats.median, kHeld / 2);
}

TEST(HedgedFailure, AllAttemptsHaveTheDeadlineOfTheCallWhichEndsThem) {
  Replica a(always({.hold = true}));
  Replica b(always({.hold = true}));
  HedgedChannel channel = channel_of(hedging_after(milliseconds(300), {&a, &b}), 2);
  const HedgedAnswer answer =
      channel.call_bytes(kRead, bytes_of("x"), {.timeout = milliseconds(900)});
  EXPECT_EQ(answer.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(eventually([&] { return a.cancels() == 1 && b.cancels() == 1; }));
  const gpr_timespec one = a.asked().front().deadline;
  const gpr_timespec other = b.asked().front().deadline;
  EXPECT_LT(
      gpr_timespec_to_micros(gpr_time_sub(gpr_time_max(one, other), gpr_time_min(one, other))),
      150'000);
  const HedgedStats stats = channel.stats();
  EXPECT_EQ(stats.failed, 1U);
  EXPECT_EQ(stats.hedges_failed, 1U);
}

TEST(HedgedFailure, ACallWhoseTimeIsOverIsNotSent) {
  Replica one(always({}));
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  const HedgedAnswer answer =
      channel.call_bytes(kRead, bytes_of("x"), {.deadline = gpr_time_0(GPR_CLOCK_REALTIME)});
  EXPECT_EQ(answer.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(answer.attempts, 0U);
  EXPECT_EQ(one.calls(), 0);
}

TEST(HedgedFailure, ACancelledCallEndsAtTheReplicasToo) {
  Replica one(always({.hold = true}));
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  Answers answers;
  const auto call = channel.send_bytes(kWrite, bytes_of("x"), answers.next());
  ASSERT_TRUE(call);
  ASSERT_TRUE(eventually([&] { return one.held() == 1; }));
  EXPECT_TRUE(channel.cancel(*call));
  EXPECT_FALSE(channel.cancel(*call));
  EXPECT_TRUE(eventually([&] { return answers.count(StatusCode::CANCELLED) == 1; }));
  EXPECT_TRUE(eventually([&] { return one.cancels() == 1; }));
  EXPECT_EQ(channel.stats().cancelled, 1U);
}

}  // namespace
}  // namespace weir::inline v0::grpc
