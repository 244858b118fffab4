#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "call_race_testing.h"
#include "upstream/call.h"

// Losers over HTTP/2: reset within a pace, otherwise read and dropped.

namespace weir::upstream {
namespace {

using policy::LoserEnd;
using std::chrono::milliseconds;

TEST_F(CallRaceTest, OnHttp2ALoserIsReset) {
  config.protocol = Protocol::kHttp2;
  make_two(soon());
  H2Origin at_a(a);
  H2Origin at_b(b);
  at_a.begin(loop.now());
  at_b.begin(loop.now());
  const auto step = [&] {
    at_a.step(loop);
    at_b.step(loop);
  };
  for (int i = 0; i < 20; ++i) step();
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  for (int i = 0; i < 500 && (at_a.requests.empty() || at_b.requests.empty()); ++i) step();
  ASSERT_EQ(at_a.requests.size() + at_b.requests.size(), 2U);
  const bool a_is_hedge = at_a.requests.begin()->second.fields.contains("x-weir-attempt");
  H2Origin& hedge = a_is_hedge ? at_a : at_b;
  H2Origin& late = a_is_hedge ? at_b : at_a;
  EXPECT_EQ(hedge.requests.begin()->second.fields["x-weir-attempt"], "2");
  hedge.answer(hedge.requests.begin()->first, 204, true);
  const H2Origin::Request& lost = late.requests.begin()->second;
  for (int i = 0; i < 500 && !(asked.seen.complete && lost.reset); ++i) step();
  EXPECT_EQ(asked.seen.status, 204U);
  EXPECT_TRUE(lost.reset);
  EXPECT_EQ(lost.code, http::h2::ErrorCode::kCancel);
  EXPECT_EQ(losers(LoserEnd::kReset), 1U);
  EXPECT_EQ(upstream->connections(), 2U) << "a reset costs no connection";
}

/// Two origins that speak HTTP/2, and a pace of resets that is used up soon.
class Http2RaceTest : public CallRaceTest {
 protected:
  void make_h2(const policy::CancelPaceRules& pace) {
    config.protocol = Protocol::kHttp2;
    config.retry_budget_tokens_max = 1000;
    cancel_pace = pace;
    // However slow the machine is, a read is hedged soon, and always.
    policy::HedgeConfig hedge;
    hedge.default_delay = milliseconds(1);
    hedge.max_delay = std::chrono::seconds(10);
    make_two(hedge);
    at_a.begin(loop.now());
    at_b.begin(loop.now());
    for (int i = 0; i < 20; ++i) step(false);
  }
  /// Hedges are answered; first attempts only if `all`.
  void step(bool all) {
    for (H2Origin* origin : {&at_a, &at_b}) {
      origin->step(loop);
      for (auto& [id, request] : origin->requests) {
        const bool due = all || request.fields.contains("x-weir-attempt");
        if (request.reset || !due || std::exchange(request.trailers, 1) != 0) continue;
        origin->answer(id, 200, false);
        EXPECT_EQ(origin->data(loop, id, std::string(1000, 'x'), true), 1000U);
      }
    }
  }
  template <class Done>
  void step_until(Done done) {
    for (int i = 0; i < 3000 && !done(); ++i) step(false);
    ASSERT_TRUE(done());
  }
  void one_call() {
    Asked asked;
    ASSERT_TRUE(get(asked.call));
    ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
    EXPECT_EQ(asked.seen.body.size(), 1000U);
  }
  [[nodiscard]] std::uint64_t ended_losers() const {
    return losers(LoserEnd::kReset) + losers(LoserEnd::kDrain);
  }
  H2Origin at_a{a};
  H2Origin at_b{b};
};

// Servers close the connection of a client that resets many streams.
TEST_F(Http2RaceTest, ResetsArePacedAndTheOtherAnswersAreReadAndDropped) {
  make_h2({.burst = 2, .per_second = 0, .drain_max = std::chrono::hours(1)});
  for (int i = 0; i < 8; ++i) ASSERT_NO_FATAL_FAILURE(one_call());
  EXPECT_EQ(ended_losers(), 8U);
  EXPECT_GE(losers(LoserEnd::kReset), 2U);
  EXPECT_LE(losers(LoserEnd::kReset), 4U) << "two on each connection";
  for (int i = 0; i < 5; ++i) step(false);
  EXPECT_LT(dispatcher->idle_connections(), 2U) << "streams whose answers are awaited";
  for (int i = 0; i < 500 && dispatcher->idle_connections() < 2; ++i) step(true);
  EXPECT_EQ(dispatcher->idle_connections(), 2U) << "all streams have ended";
  EXPECT_EQ(upstream->connections(), 2U);
}

TEST_F(Http2RaceTest, AnAnswerThatDoesNotComeIsNotAwaitedForLong) {
  make_h2({.burst = 1, .per_second = 50, .drain_max = milliseconds(1)});
  // Two connections, with one reset each at once: the third loser at the latest is drained, unless
  // the machine is so slow that a token comes between two calls.
  for (int i = 0; i < 50 && losers(LoserEnd::kDrain) == 0; ++i) {
    ASSERT_NO_FATAL_FAILURE(one_call());
  }
  ASSERT_GT(losers(LoserEnd::kDrain), 0U);
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return dispatcher->idle_connections() == 2; }));
  EXPECT_EQ(upstream->connections(), 2U);
}

}  // namespace
}  // namespace weir::upstream
