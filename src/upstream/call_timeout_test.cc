#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

// Timeouts of an attempt and of a call, and who was slow.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class CallTimeoutTest : public DispatcherTest {
 protected:
  static UpstreamConfig impatient(Duration first_byte, Duration inactivity) {
    UpstreamConfig config = plain();
    config.first_byte_timeout = first_byte;
    config.inactivity_timeout = inactivity;
    config.retry_budget_tokens_max = 0;
    return config;
  }
};

TEST_F(CallTimeoutTest, GivesUpWhenTheFirstByteTakesTooLong) {
  FakeOrigin origin;
  make({origin.name()}, impatient(milliseconds(30), minutes(1)));
  Asked asked;
  get_from(origin, asked.call);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kFirstByteTimeout);
  EXPECT_EQ(failures(UpstreamFailure::kFirstByteTimeout), 1U);
  EXPECT_GE(endpoint().score().ns, 30e6) << "it teaches the score";
}

TEST_F(CallTimeoutTest, TheFirstByteIsDueFromTheEndOfTheRequestOn) {
  FakeOrigin origin;
  make({origin.name()}, impatient(milliseconds(30), minutes(1)));
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 2}));
  origin.accept(loop);
  origin.read_head(loop);
  let_pass(milliseconds(50));
  EXPECT_FALSE(asked.seen.ended()) << "the request has not ended";
  EXPECT_TRUE(asked.call.send_body("hi", true));
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kFirstByteTimeout);
}

TEST_F(CallTimeoutTest, TheRequestMayHaveAFirstByteTimeoutOfItsOwn) {
  FakeOrigin origin;
  make({origin.name()}, impatient(milliseconds(30), minutes(1)));
  Asked longer;
  ASSERT_TRUE(get(longer.call, {.first_byte = minutes(1)}));
  origin.accept(loop);
  origin.read_head(loop);
  let_pass(milliseconds(100));
  EXPECT_FALSE(longer.seen.ended());
  Asked shorter;
  ASSERT_TRUE(get(shorter.call, {.first_byte = milliseconds(10)}));
  origin.accept_another(loop);
  origin.read_head(loop);
  run_until_ended(shorter.seen);
  EXPECT_EQ(shorter.seen.failure, UpstreamFailure::kFirstByteTimeout);
  EXPECT_FALSE(longer.seen.ended());
  longer.call.cancel();
}

// A service may send the head of a stream with its first message, however late that is.
TEST_F(CallTimeoutTest, AStreamOutlastsEveryTimeoutAndSaysNothingAboutItsEndpoint) {
  FakeOrigin origin;
  UpstreamConfig config = impatient(milliseconds(30), milliseconds(30));
  config.overall_timeout = milliseconds(60);
  make({origin.name()}, config);
  const double score = endpoint().score().ns;
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.stream = true}));
  origin.accept(loop);
  origin.read_head(loop);
  let_pass(milliseconds(200));
  EXPECT_FALSE(asked.seen.ended());
  EXPECT_EQ(counters().oldest_unanswered_ns.load(), 0) << "nobody takes its silence for a hang";
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n");
  run_until([&] { return asked.seen.body == "hi"; });
  let_pass(milliseconds(100));
  EXPECT_FALSE(asked.seen.ended()) << "nor within its body";
  origin.write("0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(endpoint().score().ns, score);
  LatencyCounts::Reading latencies{};
  counters().latency.read(latencies);
  EXPECT_EQ(summarize(latencies).samples, 0U);
  EXPECT_EQ(endpoint().health().state(), policy::EndpointState::kAvailable);
}

TEST_F(CallTimeoutTest, AStreamThatItsCallerEndsTeachesNothing) {
  FakeOrigin origin;
  make({origin.name()});
  const double score = endpoint().score().ns;
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(50), .stream = true}));
  origin.accept(loop);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
  Asked bounded;
  ASSERT_TRUE(get(bounded.call, {.overall = milliseconds(50), .stream = true}));
  run_until_ended(bounded.seen);
  EXPECT_EQ(bounded.seen.failure, UpstreamFailure::kOverallTimeout);
  EXPECT_EQ(endpoint().score().ns, score);
}

TEST_F(CallTimeoutTest, AnUpstreamThatStopsSendingItsBodyIsStalled) {
  FakeOrigin origin;
  make({origin.name()}, impatient(minutes(1), milliseconds(20)));
  Asked asked;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kStalled);
}

TEST_F(CallTimeoutTest, AnUpstreamThatStopsTakingTheBodyIsStalled) {
  FakeOrigin origin;
  make({origin.name()}, impatient(minutes(1), milliseconds(20)));
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 100'000'000}));
  origin.accept(loop);
  origin.read_head(loop);
  const std::string piece(32768, 'x');
  while (asked.call.send_body(piece, false)) {  // until the kernel accepts no more
  }
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kStalled);
  EXPECT_FALSE(asked.call.waited_for_owner());
}

TEST_F(CallTimeoutTest, ATransferThatMovesOutlastsEveryTimeout) {
  FakeOrigin origin;
  make({origin.name()}, impatient(milliseconds(250), milliseconds(250)));
  Asked asked;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
  const TimePoint begun = loop.now();
  std::size_t pieces = 0;
  while (loop.now() - begun < milliseconds(600)) {
    origin.write("2\r\nhi\r\n");
    ++pieces;
    run_until([&] { return asked.seen.body.size() == 2 * pieces; });
  }
  origin.write("0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTimeoutTest, AnOwnerThatIsSlowIsNotTheUpstreamsSilence) {
  FakeOrigin origin;
  make({origin.name()}, impatient(milliseconds(200), milliseconds(200)));
  Asked asked;
  asked.seen.take_at_most = 0;
  ASSERT_TRUE(ask(asked.call, {.length = 2}));
  origin.accept(loop);
  let_pass(milliseconds(450));  // the request body is late
  EXPECT_TRUE(asked.call.send_body("hi", true));
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes");
  run_until([&] { return asked.seen.status == 200U; });
  let_pass(milliseconds(450));  // the owner does not accept the response
  asked.seen.take_at_most = 3;
  asked.call.resume();
  EXPECT_TRUE(asked.seen.complete);
}

TEST_F(CallTimeoutTest, ADeadlineThatTheCallerSetIsNotTheEndpointsFault) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(20)}));
  origin.accept(loop);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
  EXPECT_FALSE(asked.call.waited_for_owner());
  EXPECT_TRUE(endpoint().open());
}

TEST_F(CallTimeoutTest, WhatIsEndedUnansweredTookAtLeastThisLong) {
  struct Case {
    const char* what;
    Call::Start start;
  };
  for (const Case& c :
       {Case{"caller's deadline", {.deadline = loop.now() + milliseconds(40)}},
        Case{"overall timeout", {.overall = milliseconds(40)}}, Case{"the owner left", {}}}) {
    FakeOrigin origin;
    make({origin.name()}, impatient(minutes(1), minutes(1)));
    Asked asked;
    Call::Start start = c.start;
    if (start.deadline != TimePoint{}) start.deadline = loop.now() + milliseconds(40);
    ASSERT_TRUE(get(asked.call, start));
    origin.accept(loop);
    origin.read_head(loop);
    let_pass(milliseconds(30));
    if (start.deadline == TimePoint{} && !start.overall) {
      asked.call.cancel();
    } else {
      run_until_ended(asked.seen);
    }
    EXPECT_GE(endpoint().score().ns, 20e6) << c.what;
    EXPECT_TRUE(endpoint().open()) << c.what;
    TearDown();
  }
}

TEST_F(CallTimeoutTest, ADeadlineThatIsTooShortForAnyAnswerDoesNotMakeTheEndpointLookFast) {
  FakeOrigin origin;
  make({origin.name()}, impatient(minutes(1), minutes(1)));
  endpoint().set_score({.ns = 900e6, .updated_at = loop.now()});
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(20)}));
  origin.accept(loop);
  origin.read_head(loop);
  run_until_ended(asked.seen);
  EXPECT_EQ(endpoint().score().ns, 900e6);
}

TEST_F(CallTimeoutTest, TheOverallTimeoutOfTheRouteGoesBeforeTheUpstreams) {
  FakeOrigin origin;
  UpstreamConfig config = plain();
  config.overall_timeout = std::chrono::hours(1);
  make({origin.name()}, config);
  Asked asked;
  ASSERT_TRUE(get(asked.call,
                  {.deadline = loop.now() + minutes(10), .overall = Duration(milliseconds(20))}));
  origin.accept(loop);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kOverallTimeout);
}

TEST_F(CallTimeoutTest, AnOwnerThatDoesNotSendIsTheSlowSideOfAnOverallTimeout) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 5}, {.overall = Duration(milliseconds(50))}));
  origin.accept(loop);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kOverallTimeout);
  EXPECT_TRUE(asked.call.waited_for_owner());
}

TEST_F(CallTimeoutTest, ASilentEventStreamIsNotEnded) {
  FakeOrigin origin;
  UpstreamConfig config = impatient(minutes(1), milliseconds(20));
  config.overall_timeout = milliseconds(300);
  make({origin.name()}, config);
  Asked asked;
  asked.seen.within(CallEvent::kHead, [&] { asked.call.lift_deadlines(); });
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
  run_until([&] { return asked.seen.status == 200U; });
  let_pass(milliseconds(350));
  EXPECT_FALSE(asked.seen.ended());
  origin.write("2\r\nhi\r\n0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "hi");
}

TEST_F(CallTimeoutTest, DeadlinesCanBeLiftedBeforeTheFirstAttempt) {
  FakeOrigin origin;
  make({});
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.overall = Duration(milliseconds(20))}));
  asked.call.lift_deadlines();
  upstream->set_endpoints(found({origin.name()}), loop.now());
  origin.accept(loop);
  let_pass(milliseconds(40));
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTimeoutTest, ATimeoutThatChangesHoldsForTheNextSilence) {
  FakeOrigin origin;
  make({origin.name()}, impatient(minutes(1), minutes(1)));
  UpstreamTimeouts shorter = upstream->timeouts();
  shorter.first_byte = milliseconds(20);
  upstream->set_timeouts(shorter);
  EXPECT_EQ(upstream->timeouts(), shorter);
  Asked asked;
  get_from(origin, asked.call);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kFirstByteTimeout);
}

TEST_F(CallTimeoutTest, TheTimeLeftIsThatOfTheMomentWhenTheHeadIsWritten) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  const TimePoint deadline = loop.now() + minutes(10);
  const auto left = [&] {
    let_pass(milliseconds(20));
    return std::chrono::duration_cast<milliseconds>(deadline - loop.now()).count();
  };
  const auto told = [&] {
    const std::string head = origin.read_head(loop);
    constexpr std::string_view kName = "\r\nx-weir-deadline-ms: ";
    const std::size_t at = head.find(kName);
    EXPECT_NE(at, std::string::npos) << head;
    return std::stol(head.substr(at + kName.size()));
  };
  const long before = left();
  ASSERT_TRUE(get(asked.call, {.deadline = deadline, .forwards_deadline = true}));
  const long first = told();
  EXPECT_LE(first, before);
  EXPECT_GT(first, 0);
  const long again = left();
  origin.reset();  // the kept connection was dead: the head is sent again
  origin.accept(loop);
  EXPECT_LE(told(), again);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTimeoutTest, NoTimeLeftIsZero) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(
      get(asked.call, {.deadline = loop.now() - milliseconds(20), .forwards_deadline = true}));
  EXPECT_NE(origin.read_head(loop).find("\r\nx-weir-deadline-ms: 0\r\n"), std::string::npos);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
}

}  // namespace
}  // namespace weir::upstream
