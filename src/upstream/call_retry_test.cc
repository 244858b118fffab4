#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

// Attempts that fail, and what follows.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

class CallRetryTest : public DispatcherTest {
 protected:
  static UpstreamConfig with_tokens(std::uint32_t tokens) {
    UpstreamConfig config = plain();
    config.retry_budget_tokens_max = tokens;
    config.retry_budget_pct = 0;
    return config;
  }
  [[nodiscard]] std::uint32_t tokens() const { return upstream->budget().balance_millitokens(); }
  static FakeOrigin& other_than(FakeOrigin& one, FakeOrigin& a, FakeOrigin& b) {
    return &one == &a ? b : a;
  }
  /// A body that is sent completely, on a connection to one of two origins.
  FakeOrigin& put_at_one(Asked& asked, FakeOrigin& a, FakeOrigin& b, std::string_view body) {
    EXPECT_TRUE(ask(asked.call, {.method = http::Method::kPut, .length = body.size()}));
    static_cast<void>(asked.call.send_body({}, false));
    FakeOrigin& one = accept_at_one(a, b);
    run_until([&] { return asked.seen.writable == 1; });
    for (std::size_t at = 0; at < body.size(); at += memory.bodies.block_bytes()) {
      const std::string_view piece = body.substr(at, memory.bodies.block_bytes());
      EXPECT_TRUE(asked.call.send_body(piece, at + piece.size() == body.size()));
    }
    return one;
  }
};

TEST_F(CallRetryTest, RetriesOnceWhenAKeptConnectionDied) {
  FakeOrigin origin;
  make({origin.name()}, with_tokens(0));
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  origin.read_head(loop);
  origin.reset();  // without a response
  origin.accept(loop);
  EXPECT_EQ(origin.read_head(loop), "GET / HTTP/1.1\r\nhost: x\r\nx-weir-attempt: 2\r\n\r\n");
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.call.attempts(), 2U);
  EXPECT_EQ(counters().retries.get(), 1U);
  EXPECT_TRUE(endpoint().quiet()) << "it may close what is idle";
}

TEST_F(CallRetryTest, AfterAStaleConnectionNoOtherStaleOneIsUsed) {
  FakeOrigin origin;
  make({origin.name()}, with_tokens(0));
  Asked both[2];
  for (Asked& asked : both) {
    ASSERT_TRUE(get(asked.call));
    origin.accept_another(loop);
    origin.read_head(loop);
  }
  origin.write(kNoContent);
  run_until([&] { return both[1].seen.complete; });
  origin.back_to(1);
  origin.write(kNoContent);
  run_until([&] { return both[0].seen.complete; });
  ASSERT_EQ(dispatcher->idle_connections(), 2U);
  Asked asked;
  ASSERT_TRUE(get(asked.call));  // on the one that was used last
  EXPECT_EQ(origin.read_head(loop), kGetOnWire);
  origin.close_all();  // before the loop has a turn to notice it
  origin.accept(loop);
  EXPECT_NE(origin.read_head(loop).find("x-weir-attempt: 2"), std::string::npos);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRetryTest, DoesNotRepeatAPostThatMayHaveBeenSeen) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.framing = RequestFraming::kNone}));
  origin.read_head(loop);
  origin.close();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
  EXPECT_FALSE(origin.has_caller());
}

TEST_F(CallRetryTest, ARouteCanSayThatAPostMayBeRepeated) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.framing = RequestFraming::kNone}, {.idempotent = true}));
  origin.read_head(loop);
  origin.close();
  origin.accept(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRetryTest, WhatCannotBeRepeatedDoesNotUseAConnectionThatHasEnded) {
  for (const Request& request :
       {Request{.framing = RequestFraming::kNone},
        Request{.method = http::Method::kGet, .length = 0},
        Request{.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true}}) {
    FakeOrigin origin;
    make({origin.name()});
    keep_one_idle(origin);
    origin.close();  // before the loop has a turn to notice it
    Asked asked;
    ASSERT_TRUE(ask(asked.call, request));
    if (request.framing == RequestFraming::kLength) {
      static_cast<void>(asked.call.send_body({}, true));
    }
    origin.accept(loop);
    origin.read_head(loop);
    origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    run_until_ended(asked.seen);
    EXPECT_TRUE(asked.seen.complete);
    EXPECT_EQ(asked.call.attempts(), 1U);
    TearDown();
  }
}

TEST_F(CallRetryTest, AnAnswerThatBeganIsNoStaleConnection) {
  for (const std::string_view begun : {"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200"}) {
    FakeOrigin origin;
    make({origin.name()}, with_tokens(0));
    keep_one_idle(origin);
    Asked asked;
    asked.seen.take_interim = false;
    ASSERT_TRUE(get(asked.call));
    origin.read_head(loop);
    origin.write(begun);
    origin.close();
    run_until_ended(asked.seen);
    EXPECT_EQ(asked.seen.failure, UpstreamFailure::kTruncated) << "and there is no token";
    TearDown();
  }
}

TEST_F(CallRetryTest, ARefusedConnectIsTriedElsewhereWithoutAToken) {
  FakeOrigin dead(FakeOrigin::Refusing::kYes);
  FakeOrigin alive;
  make({dead.name(), alive.name()}, with_tokens(0));
  for (int i = 0; i < 3; ++i) {  // one of them finds the dead one
    Asked asked;
    ASSERT_TRUE(ask(asked.call, {.length = 2}));
    static_cast<void>(asked.call.send_body({}, false));
    alive.accept(loop);
    run_until([&] { return asked.seen.writable == 1; });
    EXPECT_TRUE(asked.call.send_body("hi", true));
    const std::string head = alive.read_head(loop);
    EXPECT_EQ(head.find("x-weir-attempt"), std::string::npos) << "the first one that arrives";
    alive.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    run_until([&] { return asked.seen.complete && upstream->connections() == 0; });
    EXPECT_EQ(asked.call.attempts(), 1U);
  }
}

TEST_F(CallRetryTest, AGetThatFailsIsSentToAnotherEndpointFromTheBudget) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()}, with_tokens(2));
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.caller_attempt = 1}));
  FakeOrigin& first = accept_at_one(a, b);
  first.read_head(loop);
  first.write("no HTTP at all\r\n\r\n");
  FakeOrigin& second = other_than(first, a, b);
  second.accept(loop);
  EXPECT_NE(second.read_head(loop).find("\r\nx-weir-attempt: 2\r\n"), std::string::npos);
  EXPECT_EQ(tokens(), 1000U);
  second.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.call.attempts(), 2U);
  EXPECT_EQ(tokens(), 1000U) << "it is spent";
}

TEST_F(CallRetryTest, WithoutATokenNothingIsSentAgain) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()}, with_tokens(0));
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& first = accept_at_one(a, b);
  first.read_head(loop);
  first.close();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
  EXPECT_FALSE(a.has_caller() || b.has_caller());
}

TEST_F(CallRetryTest, ACallerThatRetriesItselfGetsNoRetryHere) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.caller_attempt = 2}));
  FakeOrigin& first = accept_at_one(a, b);
  EXPECT_NE(first.read_head(loop).find("\r\nx-weir-attempt: 2\r\n"), std::string::npos);
  first.close();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
}

TEST_F(CallRetryTest, NoMoreThanThreeAttemptsReachAnEndpoint) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  for (std::uint32_t i = 0; i < Call::kAttemptsMax; ++i) {
    FakeOrigin& one = accept_at_one(a, b);
    one.read_head(loop);
    one.close();
  }
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
  EXPECT_EQ(asked.call.attempts(), Call::kAttemptsMax);
}

TEST_F(CallRetryTest, ARefusedConnectOnTheWayCostsTheTokenAllTheSame) {
  // The first endpoint answers with an error, the second refuses, the third answers: what reaches
  // the third is a retry, whatever happened between.
  FakeOrigin bad;
  FakeOrigin dead(FakeOrigin::Refusing::kYes);
  FakeOrigin good;
  UpstreamConfig config = with_tokens(1);
  config.balance = policy::Balance::kLeastRequests;
  make({bad.name(), dead.name(), good.name()}, config);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  upstream->note_health(endpoint(2), policy::HealthEvent::kOperatorDrain, loop.now());
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  bad.accept(loop);
  bad.read_head(loop);
  upstream->note_health(endpoint(0), policy::HealthEvent::kOperatorDrain, loop.now());
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorUndrain, loop.now());
  bad.close();
  run_until([&] { return counters(1).connects.get() == 1; });
  upstream->note_health(endpoint(2), policy::HealthEvent::kOperatorUndrain, loop.now());
  good.accept(loop);
  good.read_head(loop);
  EXPECT_EQ(tokens(), 0U);
  good.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(tokens(), 0U);
}

TEST_F(CallRetryTest, ATokenComesBackIfNothingWasSent) {
  FakeOrigin bad;
  FakeOrigin dead(FakeOrigin::Refusing::kYes);
  UpstreamConfig config = with_tokens(1);
  config.hold_max = Duration(0);
  make({bad.name(), dead.name()}, config);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  bad.accept(loop);
  bad.read_head(loop);
  upstream->note_health(endpoint(0), policy::HealthEvent::kOperatorDrain, loop.now());
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorUndrain, loop.now());
  bad.close();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kConnectRefused);
  EXPECT_EQ(tokens(), 1000U);
}

TEST_F(CallRetryTest, ATokenOfACancelledAttemptIsSpentIfBytesWereSent) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()}, with_tokens(1));
  Asked asked;
  FakeOrigin& first = put_at_one(asked, a, b, std::string(60'000, 'x'));
  first.reset();
  FakeOrigin& second = other_than(first, a, b);
  second.accept(loop);
  second.read_head(loop);  // and not the whole body
  asked.call.cancel();
  EXPECT_EQ(tokens(), 0U);
}

TEST_F(CallRetryTest, RequestsToAnEndpointFillItsOwnBudget) {
  FakeOrigin origin;
  UpstreamConfig config = plain();
  config.retry_budget_pct = 1;
  config.retry_budget_tokens_max = 5;
  make({origin.name()}, config);
  EXPECT_EQ(endpoint().budget().balance_millitokens(), 5000U);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(endpoint().budget().try_take());
  keep_one_idle(origin);
  EXPECT_EQ(endpoint().budget().balance_millitokens(), 1000U);
}

TEST_F(CallRetryTest, AKeptBodyIsSentAgainCompletely) {
  for (const std::size_t size : {1UL, 100UL, 32UL * 1024, 32UL * 1024 + 1, 64UL * 1024}) {
    FakeOrigin a;
    FakeOrigin b;
    make({a.name(), b.name()});
    std::string body(size, ' ');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 25);
    Asked asked;
    FakeOrigin& first = put_at_one(asked, a, b, body);
    EXPECT_EQ(asked.call.held_bytes(), size);
    const std::string head = text_of({.method = http::Method::kPut, .length = size}) + "\r\n";
    EXPECT_EQ(first.read(loop, head.size() + size).size(), head.size() + size);
    first.reset();
    FakeOrigin& second = other_than(first, a, b);
    second.accept(loop);
    const std::string again =
        text_of({.method = http::Method::kPut, .length = size}) + "x-weir-attempt: 2\r\n\r\n";
    EXPECT_TRUE(second.read(loop, again.size() + size) == again + body);
    second.write(kNoContent);
    run_until([&] { return asked.seen.complete; });
    TearDown();
  }
}

TEST_F(CallRetryTest, ABodyWithTrailersIsSentAgainCompletely) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  const Request request{.method = http::Method::kPut, .framing = RequestFraming::kChunked};
  const http::HeaderView trailer{"x-sum", "1"};
  Asked asked;
  ASSERT_TRUE(ask(asked.call, request));
  static_cast<void>(asked.call.send_body({}, false));
  FakeOrigin& first = accept_at_one(a, b);
  run_until([&] { return asked.seen.writable == 1; });
  EXPECT_TRUE(asked.call.send_body("abc", false));
  EXPECT_TRUE(asked.call.send_body("de", false));
  EXPECT_TRUE(asked.call.send_trailers({&trailer, 1}));
  first.read_head(loop);
  first.reset();
  FakeOrigin& second = other_than(first, a, b);
  second.accept(loop);
  const std::string again =
      text_of(request) + "x-weir-attempt: 2\r\n\r\n5\r\nabcde\r\n0\r\nx-sum: 1\r\n\r\n";
  EXPECT_EQ(second.read(loop, again.size()), again);
  second.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRetryTest, AnEmptyBodyIsEndedAgain) {
  for (const RequestFraming framing : {RequestFraming::kLength, RequestFraming::kChunked}) {
    FakeOrigin origin;
    make({origin.name()});
    keep_one_idle(origin);
    const Request request{.method = http::Method::kPut, .framing = framing};
    Asked asked;
    ASSERT_TRUE(ask(asked.call, request));
    EXPECT_TRUE(asked.call.send_body({}, true));
    origin.read_head(loop);
    origin.reset();
    origin.accept(loop);
    const std::string again = text_of(request) + "x-weir-attempt: 2\r\n\r\n" +
                              (framing == RequestFraming::kChunked ? "0\r\n\r\n" : "");
    EXPECT_EQ(origin.read(loop, again.size()), again);
    origin.write(kNoContent);
    run_until([&] { return asked.seen.complete; });
    TearDown();
  }
}

TEST_F(CallRetryTest, TheOwnerIsToldToWaitWhileABodyIsSentAgain) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.method = http::Method::kPut, .length = 6}));
  static_cast<void>(asked.call.send_body({}, false));
  FakeOrigin& first = accept_at_one(a, b);
  run_until([&] { return asked.seen.writable == 1; });
  EXPECT_TRUE(asked.call.send_body("abc", false));
  first.read_head(loop);
  first.reset();
  run_until([&] { return asked.seen.blocked == 1; });
  FakeOrigin& second = other_than(first, a, b);
  second.accept(loop);
  run_until([&] { return asked.seen.writable == 2; });
  EXPECT_TRUE(asked.call.send_body("def", true));
  const std::string got = second.read_until(loop, "abcdef");
  EXPECT_EQ(got.substr(got.find("\r\n\r\n") + 4), "abcdef");
  second.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.blocked, 1);
}

TEST_F(CallRetryTest, ABodyThatIsTooLongToKeepIsNotSentAgain) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  Asked asked;
  FakeOrigin& first = put_at_one(asked, a, b, std::string(64 * 1024 + 1, 'x'));
  EXPECT_EQ(asked.call.held_bytes(), 0U);
  first.read(loop, 64 * 1024);
  first.reset();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
}

TEST_F(CallRetryTest, OneReplicasRefusalIsAskedOfAnother) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()}, with_tokens(1));
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& first = accept_at_one(a, b);
  first.read_head(loop);
  first.write(kUnavailable);
  FakeOrigin& second = other_than(first, a, b);
  second.accept(loop);
  second.read_head(loop);
  EXPECT_EQ(asked.seen.heads, 0);
  second.write(kUnavailable);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 503U) << "there is no third";
  EXPECT_EQ(asked.seen.body, "late");
  run_until([&] { return dispatcher->idle_connections() == 2; });
}

TEST_F(CallRetryTest, ARefusalThatSaysWhenIsLeftToTheClient) {
  for (const std::string_view field :
       {"retry-after: 1", "retry-after: Wed, 21 Oct 2015 07:28:00 GMT",
        "x-weir-retry-after-ms: 20"}) {
    FakeOrigin a;
    FakeOrigin b;
    make({a.name(), b.name()});
    Asked asked;
    ASSERT_TRUE(get(asked.call));
    FakeOrigin& first = accept_at_one(a, b);
    first.read_head(loop);
    first.write("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n" + std::string(field) +
                "\r\n\r\n");
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(asked.seen.status, 503U) << field;
    TearDown();
  }
}

TEST_F(CallRetryTest, ARefusalIsDeliveredIfItCannotBeAskedElsewhere) {
  struct Case {
    const char* why;
    std::uint32_t tokens;
    http::Method method;
    bool two;
  };
  for (const Case& test : {Case{"no token", 0, http::Method::kGet, true},
                           Case{"not idempotent", 9, http::Method::kPost, true},
                           Case{"no other endpoint", 9, http::Method::kGet, false}}) {
    FakeOrigin a;
    FakeOrigin b;
    make(test.two ? std::vector{a.name(), b.name()} : std::vector{a.name()},
         with_tokens(test.tokens));
    Asked asked;
    ASSERT_TRUE(ask(asked.call, {.method = test.method, .framing = RequestFraming::kNone}));
    FakeOrigin& first = accept_at_one(a, b);
    first.read_head(loop);
    first.write(kUnavailable);
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(asked.seen.status, 503U) << test.why;
    EXPECT_EQ(tokens(), test.tokens * 1000) << test.why;
    TearDown();
  }
}

TEST_F(CallRetryTest, AnInterimHeadThatWentDownstreamDecides) {
  for (const bool passed_on : {true, false}) {
    FakeOrigin a;
    FakeOrigin b;
    make({a.name(), b.name()});
    Asked asked;
    asked.seen.take_interim = passed_on;
    ASSERT_TRUE(get(asked.call));
    FakeOrigin& first = accept_at_one(a, b);
    first.read_head(loop);
    first.write("HTTP/1.1 103 Early Hints\r\n\r\n");
    run_until([&] { return asked.seen.interim.size() == 1; });
    first.write(kUnavailable);
    if (!passed_on) {
      FakeOrigin& second = other_than(first, a, b);
      second.accept(loop);
      second.read_head(loop);
      second.write(kNoContent);
    }
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(asked.seen.status, passed_on ? 503U : 204U);
    TearDown();
  }
}

TEST_F(CallRetryTest, NothingIsSentAgainAfterAByteOfTheAnswer) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& first = accept_at_one(a, b);
  first.read_head(loop);
  first.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n");
  run_until([&] { return asked.seen.status == 200U; });
  first.reset();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kTruncated);
  EXPECT_EQ(asked.call.attempts(), 1U);
}

TEST_F(CallRetryTest, WithOneEndpointTheNextAttemptWaits) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  origin.close();
  run_until([&] { return failures(UpstreamFailure::kClosedEarly) == 1; });
  EXPECT_EQ(counters().connects.get(), 1U) << "in back-off";
  EXPECT_TRUE(asked.call.active());
  origin.accept(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRetryTest, ADeadlineThatEndsBeforeTheWaitEndsTheCall) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.overall = Duration(milliseconds(49))}));
  origin.accept(loop);
  origin.close();
  run_until_ended(asked.seen);
  EXPECT_NE(asked.seen.failure, UpstreamFailure::kNone);
  EXPECT_EQ(counters().connects.get(), 1U);
}

TEST_F(CallRetryTest, TheTimeoutOfAnAttemptIsRetriedElsewhere) {
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = plain();
  config.first_byte_timeout = milliseconds(250);
  make({a.name(), b.name()}, config);
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& first = accept_at_one(a, b);
  first.read_head(loop);
  FakeOrigin& second = other_than(first, a, b);
  second.accept(loop);
  second.read_head(loop);
  second.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_TRUE(first.ended());
}

TEST_F(CallRetryTest, BadAnswersInARowEjectAnEndpointForAWhile) {
  FakeOrigin origin;
  make({origin.name()}, with_tokens(0));
  const auto ask_one = [&](std::string_view answer) {
    Asked asked;
    get_from(origin, asked.call);
    origin.write(answer);
    origin.close();
    run_until_ended(asked.seen);
  };
  constexpr std::string_view kBad = "garbage, and enough of it\r\n";
  ask_one(kBad);
  ask_one(kBad);
  EXPECT_TRUE(endpoint().open());
  ask_one("HTTP/1.0 200 OK\r\n\r\n");
  for (int i = 0; i < 3; ++i) ask_one(kBad);
  EXPECT_FALSE(endpoint().open());
  ask_one("HTTP/1.0 200 OK\r\n\r\n");  // ejected, but the only endpoint: still used
  EXPECT_FALSE(endpoint().open()) << "one good answer among bad ones proves nothing";
  run_until([&] { return endpoint().open(); });  // the pause is over
}

}  // namespace
}  // namespace weir::upstream
