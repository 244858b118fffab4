#include "weir/experimental/grpc/hedged_channel.h"

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hedged_testing.h"

namespace weir::inline v0::grpc {
namespace {

using hedge_testkit::always;
using hedge_testkit::Answers;
using hedge_testkit::Asked;
using hedge_testkit::bytes_of;
using hedge_testkit::channel_of;
using hedge_testkit::eventually;
using hedge_testkit::hedging_after;
using hedge_testkit::kIdempotentWrite;
using hedge_testkit::kRead;
using hedge_testkit::kWrite;
using hedge_testkit::Replica;
using hedge_testkit::Reply;
using hedge_testkit::text_of;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Holds the first call that any of its replicas gets, and answers all others.
class FirstIsHeld {
 public:
  [[nodiscard]] Replica::Decide decide() {
    return [this](const Asked&) { return Reply{.hold = arrived_.fetch_add(1) == 0}; };
  }
  void again() { arrived_ = 0; }

 private:
  std::atomic<int> arrived_{0};
};

TEST(HedgedChannel, AnswersACallWithTheResponseOfAReplica) {
  Replica replica([](const Asked& asked) { return Reply{.body = "got " + asked.body}; });
  HedgedChannel channel = channel_of(hedging_after(seconds(5), {&replica}), 1);
  const HedgedAnswer answer = channel.call_bytes(kRead, bytes_of("key"));
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(text_of(answer.response), "got key");
  EXPECT_EQ(answer.replica, replica.target());
  EXPECT_EQ(answer.attempts, 1U);
  EXPECT_FALSE(answer.hedged);
  EXPECT_EQ(replica.asked().front().attempt, "");
}

TEST(HedgedChannel, AReadWhoseReplicaIsLateIsAnsweredByASecondOneAndTheLateOneSeesTheCancel) {
  FirstIsHeld first;
  Replica a(first.decide());
  Replica b(first.decide());
  HedgedChannel channel = channel_of(hedging_after(milliseconds(5), {&a, &b}), 2);
  const HedgedAnswer answer = channel.call_bytes(kRead, bytes_of("key"));
  EXPECT_TRUE(answer.status.ok());
  EXPECT_TRUE(answer.hedge_won);
  EXPECT_EQ(answer.attempts, 2U);
  EXPECT_TRUE(eventually([&] { return a.cancels() + b.cancels() == 1; }));
  EXPECT_EQ(a.calls() + b.calls(), 2);
  const Replica& winner = answer.replica == a.target() ? a : b;
  EXPECT_EQ(winner.asked().front().attempt, "2");
  const HedgedStats stats = channel.stats();
  EXPECT_EQ(stats.hedges, 1U);
  EXPECT_EQ(stats.hedges_won, 1U);
  EXPECT_EQ(stats.losers_cancelled, 1U);
}

TEST(HedgedChannel, NoMethodButAReadIsHedged) {
  Replica a(always({.hold = true}));
  Replica b(always({.hold = true}));
  HedgedChannel channel = channel_of(hedging_after(milliseconds(1), {&a, &b}), 2);
  Answers answers;
  for (const char* method : {kWrite, kIdempotentWrite, "/test.Store/Unknown"}) {
    ASSERT_TRUE(channel.send_bytes(method, bytes_of("x"), answers.next()));
  }
  ASSERT_TRUE(eventually([&] { return a.held() + b.held() == 2 && answers.count() == 1; }));
  // A read that comes later has its hedge, so the time of the others is over.
  ASSERT_TRUE(channel.send_bytes(kRead, bytes_of("x"), answers.next()));
  ASSERT_TRUE(eventually([&] { return a.held() + b.held() == 4; }));
  EXPECT_EQ(channel.stats().hedges, 1U);
  a.release();
  b.release();
  ASSERT_TRUE(eventually([&] { return answers.count() == 4; }));
  EXPECT_EQ(a.calls() + b.calls(), 4);
}

TEST(HedgedChannel, TypedCallsSerializeOnceAndParse) {
  Replica replica([](const Asked& asked) { return Reply{.body = asked.body + "!"}; });
  HedgedChannel channel = channel_of(hedging_after(seconds(5), {&replica}), 1);
  ::grpc::ByteBuffer response;
  EXPECT_TRUE(channel.call(kRead, bytes_of("hi"), response).ok());
  EXPECT_EQ(text_of(response), "hi!");
  std::atomic<bool> done{false};
  const auto sent = channel.send<::grpc::ByteBuffer>(
      kRead, bytes_of("ho"), [&](::grpc::Status status, const ::grpc::ByteBuffer& got) {
        EXPECT_TRUE(status.ok());
        EXPECT_EQ(text_of(got), "ho!");
        done = true;
      });
  ASSERT_TRUE(sent);
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

}  // namespace
}  // namespace weir::inline v0::grpc
