#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/grpc/hedged_channel.h"

#include "hedged_testing.h"

// What follows a refusal.

namespace weir::inline v0::grpc {
namespace {

using ::grpc::StatusCode;
using hedge_testkit::always;
using hedge_testkit::Asked;
using hedge_testkit::bytes_of;
using hedge_testkit::channel_of;
using hedge_testkit::config_of;
using hedge_testkit::kIdempotentWrite;
using hedge_testkit::kRead;
using hedge_testkit::kWrite;
using hedge_testkit::refusal;
using hedge_testkit::Replica;
using hedge_testkit::Reply;
using std::chrono::milliseconds;

/// Refuses the first call and serves all others.
class RefusesFirst {
 public:
  explicit RefusesFirst(Reply refusal) : refusal_(std::move(refusal)) {}
  [[nodiscard]] Replica::Decide decide() {
    return [this](const Asked&) { return arrived_.fetch_add(1) == 0 ? refusal_ : Reply{}; };
  }

 private:
  const Reply refusal_;
  std::atomic<int> arrived_{0};
};

TEST(HedgedPushback, ARefusedCallIsSentAgainNotBeforeTheTimeThatTheReplicaAskedFor) {
  for (const char* method : {kRead, kIdempotentWrite}) {
    RefusesFirst first(refusal("400"));
    Replica one(first.decide());
    HedgedChannel channel = channel_of(config_of({&one}), 1);
    const HedgedAnswer answer = channel.call_bytes(method, bytes_of("x"));
    EXPECT_TRUE(answer.status.ok()) << method;
    EXPECT_EQ(answer.attempts, 2U);
    const std::vector<Asked> asked = one.asked();
    ASSERT_EQ(asked.size(), 2U) << method;
    EXPECT_GE(asked[1].at - asked[0].at, milliseconds(400)) << method;
    EXPECT_EQ(asked[1].attempt, "2");
  }
}

TEST(HedgedPushback, ANegativeOrMalformedPushbackMeansNoOtherAttempt) {
  for (const char* stop : {"-1", "soon"}) {
    Replica one(always(refusal(stop)));
    HedgedChannel channel = channel_of(config_of({&one}), 1);
    const HedgedAnswer answer = channel.call_bytes(kRead, bytes_of("x"));
    EXPECT_EQ(answer.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_FALSE(answer.retry_after);
    EXPECT_EQ(one.calls(), 1) << stop;
  }
}

TEST(HedgedPushback, APushbackBehindTheDeadlineEndsTheCallAtOnceWithTheRefusal) {
  Replica one(always(refusal("60000")));
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  const HedgedAnswer answer = channel.call_bytes(kRead, bytes_of("x"));
  EXPECT_EQ(answer.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(answer.retry_after, Duration(std::chrono::seconds(60)));
  EXPECT_EQ(one.calls(), 1);
}

TEST(HedgedPushback, AReplicaThatAskedForFewerCallsIsSkippedWhileAnotherOneIsThere) {
  Replica busy(always(refusal("5000")));
  Replica idle(always({}));
  HedgedChannel channel = channel_of(config_of({&busy, &idle}), 2);
  EXPECT_EQ(
      channel.call_bytes(kWrite, bytes_of("x"), {.among = {busy.target()}}).status.error_code(),
      StatusCode::RESOURCE_EXHAUSTED);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(channel.call_bytes(kWrite, bytes_of("x")).status.ok());
  EXPECT_EQ(busy.calls(), 1);
  EXPECT_EQ(idle.calls(), 20);
}

TEST(HedgedPushback, AWriteIsSentAgainOnlyIfItWasRefusedBeforeItsHandler) {
  RefusesFirst plain(refusal("10"));
  Replica one(plain.decide());
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  EXPECT_EQ(channel.call_bytes(kWrite, bytes_of("x")).status.error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(one.calls(), 1);

  Reply admission = refusal("10");
  admission.trailers.emplace_back("x-weir-reason", "overload");
  RefusesFirst explained(admission);
  Replica other(explained.decide());
  HedgedChannel second = channel_of(config_of({&other}), 1);
  EXPECT_TRUE(second.call_bytes(kWrite, bytes_of("x")).status.ok());
  EXPECT_EQ(other.calls(), 2);
}

TEST(HedgedPushback, ARefusalIsFollowedByNothingWithoutABudgetOrIfTheCallerRepeatsTheCall) {
  Replica one(always(refusal("10")));
  HedgedChannelConfig config = config_of({&one});
  HedgedChannel channel = channel_of(config, 1);
  EXPECT_FALSE(channel.call_bytes(kRead, bytes_of("x"), {.attempt = 2}).status.ok());
  EXPECT_EQ(one.calls(), 1);
  config.hedge.max_budget_tokens = 0;
  HedgedChannel poor = channel_of(config, 1);
  EXPECT_FALSE(poor.call_bytes(kRead, bytes_of("x")).status.ok());
  EXPECT_EQ(one.calls(), 2);
}

TEST(HedgedPushback, AtMostThreeAttemptsAreMade) {
  Replica one(always(refusal("1")));
  HedgedChannel channel = channel_of(config_of({&one}), 1);
  EXPECT_EQ(channel.call_bytes(kRead, bytes_of("x")).status.error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(one.calls(), 3);
}

}  // namespace
}  // namespace weir::inline v0::grpc
