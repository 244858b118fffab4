#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "call_race_testing.h"
#include "upstream/call.h"

// Unary gRPC reads with two attempts at once: requests with a body, whose answer is in a status.

namespace weir::upstream {
namespace {

using policy::LoserEnd;
using policy::NoHedge;
using std::chrono::milliseconds;

using Fields = std::vector<http::h2::Field>;

class GrpcRaceTest : public CallRaceTest {
 protected:
  static constexpr std::string_view kMessage = "a message";

  void start_two(const policy::HedgeConfig& hedge) {
    config.protocol = Protocol::kHttp2;
    make_two(hedge);
    at_a.begin(loop.now());
    at_b.begin(loop.now());
    for (int i = 0; i < 20; ++i) step();
  }
  void step() {
    at_a.step(loop);
    at_b.step(loop);
  }
  template <class Done>
  void step_until(Done done) {
    for (int i = 0; i < 3000 && !done(); ++i) step();
    ASSERT_TRUE(done());
  }
  void let_pass_stepping(Duration time) {
    const TimePoint until = loop.now() + time;
    step_until([&] { return loop.now() >= until; });
  }
  /// The head, and the message with the end of the request.
  void say(Call& call, const Call::Start& start = {.idempotent = true},
           std::string_view message = kMessage) {
    begin(call, start);
    static_cast<void>(call.send_body(message, true));
  }
  void begin(Call& call, const Call::Start& start) {
    ASSERT_TRUE(
        ask(call, {.method = http::Method::kPost, .framing = RequestFraming::kChunked}, start));
    static_cast<void>(call.send_body({}, false));
  }
  void step_until_both_have_it() {
    ASSERT_NO_FATAL_FAILURE(step_until([&] {
      return !at_a.requests.empty() && !at_b.requests.empty() && last(at_a).ended &&
             last(at_b).ended;
    }));
    const bool a_is_hedge = last(at_a).fields.contains("x-weir-attempt");
    hedge = a_is_hedge ? &at_a : &at_b;
    late = a_is_hedge ? &at_b : &at_a;
  }
  static H2Origin::Request& last(H2Origin& origin) { return origin.requests.rbegin()->second; }
  /// An answer without a message.
  void status(H2Origin& origin, std::string_view code, Fields more = {}) {
    more.insert(more.begin(), {{"content-type", "application/grpc"}, {"grpc-status", code}});
    origin.answer(origin.requests.rbegin()->first, 200, true, more);
  }
  void message(H2Origin& origin) {
    const http::h2::StreamId id = origin.requests.rbegin()->first;
    origin.answer(id, 200, false, {{"content-type", "application/grpc"}});
    origin.data(loop, id, "answer", true);
  }

  H2Origin at_a{a};
  H2Origin at_b{b};
  H2Origin* hedge = nullptr;
  H2Origin* late = nullptr;
};

TEST_F(GrpcRaceTest, AReplicaAnswersForOneThatIsLate) {
  start_two(soon());
  Asked asked;
  const TimePoint deadline = loop.now() + std::chrono::seconds(30);
  say(asked.call, {.deadline = deadline, .grpc_timeout = true, .idempotent = true});
  ASSERT_NO_FATAL_FAILURE(step_until_both_have_it());
  EXPECT_EQ(last(*hedge).fields["x-weir-attempt"], "2");
  EXPECT_EQ(last(*hedge).body, kMessage);
  EXPECT_EQ(last(*late).body, kMessage);
  const std::string left = last(*hedge).fields["grpc-timeout"];
  ASSERT_TRUE(left.ends_with('m')) << left;
  EXPECT_LE(std::stoi(left), std::stoi(last(*late).fields["grpc-timeout"])) << "one deadline";
  message(*hedge);
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete && last(*late).reset; }));
  EXPECT_EQ(asked.seen.body, "answer");
  EXPECT_EQ(last(*late).code, http::h2::ErrorCode::kCancel);
  EXPECT_EQ(sum(&CallCounters::hedges_won), 1U);
  EXPECT_EQ(losers(LoserEnd::kReset), 1U);
  EXPECT_EQ(tokens(), 1U) << "of two";
}

TEST_F(GrpcRaceTest, AWriteIsNeverSentTwice) {
  start_two(soon());
  Asked asked;
  say(asked.call, {.idempotent = false});
  let_pass_stepping(milliseconds(40));
  EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 1U);
  EXPECT_EQ(no_hedge(NoHedge::kUnsafe), 1U);
  asked.call.cancel();
}

// The messages that follow are not known, so nobody else could be sent them.
TEST_F(GrpcRaceTest, ARequestThatHasNotEndedIsNotHedged) {
  start_two(soon());
  Asked asked;
  begin(asked.call, {.idempotent = true});
  static_cast<void>(asked.call.send_body(kMessage, false));
  let_pass_stepping(milliseconds(40));
  EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 1U);
  static_cast<void>(asked.call.send_body(kMessage, true));
  ASSERT_NO_FATAL_FAILURE(step_until_both_have_it());
  EXPECT_EQ(last(*hedge).body, std::string(kMessage) + std::string(kMessage));
  message(*hedge);
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
}

TEST_F(GrpcRaceTest, ARequestThatIsTooLongToKeepIsNotHedged) {
  config.retry_body_max = 100;
  start_two(soon());
  Asked asked;
  say(asked.call, {.idempotent = true}, std::string(1000, 'x'));
  let_pass_stepping(milliseconds(40));
  EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 1U);
  EXPECT_EQ(no_hedge(NoHedge::kBody), 1U);
  asked.call.cancel();
}

TEST_F(GrpcRaceTest, AnAnswerBeforeTheEndOfTheRequestIsNotHedged) {
  start_two(soon());
  Asked asked;
  begin(asked.call, {.idempotent = true});
  H2Origin* one = nullptr;
  ASSERT_NO_FATAL_FAILURE(step_until([&] {
    one = !at_a.requests.empty() ? &at_a : !at_b.requests.empty() ? &at_b : nullptr;
    return one != nullptr;
  }));
  one->answer(one->requests.rbegin()->first, 200, false, {{"content-type", "application/grpc"}});
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.status == 200; }));
  static_cast<void>(asked.call.send_body(kMessage, true));
  let_pass_stepping(milliseconds(40));
  EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 1U);
  EXPECT_EQ(no_hedge(NoHedge::kNotNeeded), 1U);
  asked.call.cancel();
}

TEST_F(GrpcRaceTest, ASuccessBeatsAnErrorThatCameFirst) {
  for (const std::string_view code : {"13", "14", "8", "garbage"}) {
    SCOPED_TRACE(code);
    if (dispatcher) TearDown();
    at_a.requests.clear();
    at_b.requests.clear();
    start_two(soon());
    Asked asked;
    say(asked.call);
    ASSERT_NO_FATAL_FAILURE(step_until_both_have_it());
    status(*late, code);
    for (int i = 0; i < 20; ++i) step();
    EXPECT_FALSE(asked.seen.ended()) << "it is set aside";
    message(*hedge);
    ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
    EXPECT_EQ(asked.seen.body, "answer");
  }
}

TEST_F(GrpcRaceTest, IfAllFailTheErrorOfTheFirstIsTold) {
  for (const bool hedge_is_first : {true, false}) {
    SCOPED_TRACE(hedge_is_first);
    if (dispatcher) TearDown();
    at_a.requests.clear();
    at_b.requests.clear();
    start_two(soon());
    Asked asked;
    say(asked.call);
    ASSERT_NO_FATAL_FAILURE(step_until_both_have_it());
    hedge_is_first ? status(*hedge, "13") : status(*late, "3");
    for (int i = 0; i < 20; ++i) step();
    EXPECT_FALSE(asked.seen.ended());
    hedge_is_first ? status(*late, "3") : status(*hedge, "13");
    ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
    EXPECT_EQ(asked.call.endpoint(), &endpoint_of(late == &at_a ? a : b));
    EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 2U) << "not sent again for it";
  }
}

TEST_F(GrpcRaceTest, AnErrorOfTheOnlyAttemptIsTheAnswer) {
  start_two(never());
  Asked asked;
  say(asked.call);
  ASSERT_NO_FATAL_FAILURE(
      step_until([&] { return at_a.requests.size() + at_b.requests.size() == 1; }));
  status(at_a.requests.empty() ? at_b : at_a, "9");
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
  EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 1U);
}

TEST_F(GrpcRaceTest, UnavailableIsAskedAgainAtAnotherEndpoint) {
  start_two(never());
  Asked asked;
  say(asked.call);
  ASSERT_NO_FATAL_FAILURE(
      step_until([&] { return at_a.requests.size() + at_b.requests.size() == 1; }));
  H2Origin& first = at_a.requests.empty() ? at_b : at_a;
  H2Origin& second = &first == &at_a ? at_b : at_a;
  status(first, "14");
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return !second.requests.empty(); }));
  EXPECT_EQ(last(second).body, kMessage);
  EXPECT_EQ(last(second).fields["x-weir-attempt"], "2");
  message(second);
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
  EXPECT_EQ(asked.seen.body, "answer");
}

TEST_F(GrpcRaceTest, ANegativePushbackForbidsThat) {
  start_two(never());
  Asked asked;
  say(asked.call);
  ASSERT_NO_FATAL_FAILURE(
      step_until([&] { return at_a.requests.size() + at_b.requests.size() == 1; }));
  status(at_a.requests.empty() ? at_b : at_a, "14", {{"grpc-retry-pushback-ms", "-1"}});
  ASSERT_NO_FATAL_FAILURE(step_until([&] { return asked.seen.complete; }));
  EXPECT_EQ(at_a.requests.size() + at_b.requests.size(), 1U);
}

}  // namespace
}  // namespace weir::upstream
