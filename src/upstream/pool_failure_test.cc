#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "upstream/pool.h"
#include "upstream/pool_testing.h"

// Origins that refuse, close, send invalid responses or stay silent.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

class PoolFailureTest : public UpstreamPoolTest {};

TEST_F(PoolFailureTest, RetriesASafeRequestOnceWhenAKeptConnectionDied) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);

  Asked asked;
  ASSERT_TRUE(get(asked.exchange));
  origin.read_head(loop);
  origin.reset();  // without a response
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.exchange.attempts(), 2U);
}

TEST_F(PoolFailureTest, DoesNotRepeatAPostThatMayHaveBeenSeen) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);

  Asked asked;
  put_head(*pool, asked.exchange, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange, {.method = http::Method::kPost}));
  origin.read_head(loop);
  origin.close();
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
  EXPECT_FALSE(origin.has_caller());
}

TEST_F(PoolFailureTest, DoesNotRepeatAHeadWhoseEmptyBodyIsGone) {
  const http::HeaderView trailer{"x-sum", "0", http::FieldId::kOther, false};
  for (const bool with_trailer : {false, true}) {
    FakeOrigin origin;
    make({origin.name()});
    keep_one_idle(origin);

    Asked asked;
    put_head(*pool, asked.exchange,
             "GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    ASSERT_TRUE(pool->start(asked.exchange,
                            {.method = http::Method::kGet, .framing = RequestFraming::kChunked}));
    EXPECT_TRUE(with_trailer ? asked.exchange.send_trailers({&trailer, 1})
                             : asked.exchange.send_body({}, true));
    origin.read_head(loop);
    origin.reset();
    run_until_failed(asked.seen);
    EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
    EXPECT_FALSE(origin.has_caller());
    TearDown();
  }
}

TEST_F(PoolFailureTest, WhatCannotBeRepeatedDoesNotUseAConnectionThatHasEnded) {
  for (const UpstreamPool::Start& start :
       {UpstreamPool::Start{.method = http::Method::kPost},
        UpstreamPool::Start{.method = http::Method::kGet, .framing = RequestFraming::kLength},
        UpstreamPool::Start{.method = http::Method::kGet, .upgrade = true}}) {
    FakeOrigin origin;
    make({origin.name()});
    keep_one_idle(origin);
    origin.close();  // before the loop has a turn to notice it

    Asked asked;
    put_head(*pool, asked.exchange, "X / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    ASSERT_TRUE(pool->start(asked.exchange, start));
    origin.accept(loop);
    origin.read_head(loop);
    origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(asked.seen.status, 200U);
    EXPECT_EQ(asked.exchange.attempts(), 1U);
    TearDown();
  }
}

TEST_F(PoolFailureTest, TriesTheNextEndpointWhenOneRefuses) {
  FakeOrigin dead;
  FakeOrigin alive;
  const io::SocketName dead_name = dead.name();
  dead.stop_listening();
  make({dead_name, alive.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.exchange));
  alive.accept(loop);
  alive.read_head(loop);
  alive.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_FALSE(upstream->at(0).available(loop.now()));
}

TEST_F(PoolFailureTest, SaysRefusedWhenNobodyListens) {
  FakeOrigin dead;
  const io::SocketName name = dead.name();
  dead.stop_listening();
  make({name});
  Asked asked;
  const auto started = get(asked.exchange);
  if (started) run_until([&] { return asked.seen.failure != UpstreamFailure::kNone; });
  EXPECT_EQ(started ? asked.seen.failure : started.error(), UpstreamFailure::kConnectRefused);
  EXPECT_FALSE(asked.exchange.active());
}

TEST_F(PoolFailureTest, AnEndpointIsNotToBlameWhenNoDescriptorIsLeft) {
  FakeOrigin origin;
  make({origin.name()});
  Asked first;  // the sanitizer checks a type once, with a descriptor
  ASSERT_TRUE(get(first.exchange).has_value());
  first.exchange.cancel();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};  // for new descriptors
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Asked asked;
  const auto started = get(asked.exchange);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error(), UpstreamFailure::kNoConnection);
  EXPECT_TRUE(upstream->at(0).available(loop.now()));
}

TEST_F(PoolFailureTest, GivesUpWhenTheFirstByteTakesTooLong) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.first_byte_timeout = milliseconds(30);
  make({origin.name()}, config);
  Asked asked;
  ASSERT_TRUE(get(asked.exchange));
  origin.accept(loop);
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kFirstByteTimeout);
}

TEST_F(PoolFailureTest, ADeadlineThatTheCallerSetIsNotTheUpstreamsOverload) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  put_head(*pool, asked.exchange, kGet);
  ASSERT_TRUE(pool->start(asked.exchange, {.deadline = loop.now() + milliseconds(20)}));
  origin.accept(loop);
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
  EXPECT_EQ(facts_of(asked.seen.failure).outcome, Outcome::kIgnored);
  EXPECT_FALSE(asked.exchange.waited_for_owner());
  EXPECT_TRUE(upstream->at(0).available(loop.now()));
}

TEST_F(PoolFailureTest, TheOverallTimeoutOfTheRouteGoesBeforeTheUpstreams) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.overall_timeout = std::chrono::hours(1);
  make({origin.name()}, config);
  Asked asked;
  put_head(*pool, asked.exchange, kGet);
  ASSERT_TRUE(pool->start(asked.exchange, {.deadline = loop.now() + std::chrono::minutes(10),
                                           .overall = milliseconds(20)}));
  origin.accept(loop);
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kOverallTimeout);
}

TEST_F(PoolFailureTest, AnOwnerThatDoesNotSendIsTheSlowSideOfAnOverallTimeout) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  put_head(*pool, asked.exchange, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange, {.method = http::Method::kPost,
                                           .framing = RequestFraming::kLength,
                                           .overall = milliseconds(50)}));
  origin.accept(loop);
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kOverallTimeout);
  EXPECT_TRUE(asked.exchange.waited_for_owner());
}

TEST_F(PoolFailureTest, AnUpstreamThatStopsSendingItsBodyIsStalled) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.inactivity_timeout = milliseconds(20);
  make({origin.name()}, config);
  Asked asked;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kStalled);
}

TEST_F(PoolFailureTest, AnUpstreamThatStopsTakingTheBodyIsStalled) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.inactivity_timeout = milliseconds(20);
  make({origin.name()}, config);
  Asked asked;
  put_head(*pool, asked.exchange,
           "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange,
                          {.method = http::Method::kPost, .framing = RequestFraming::kLength}));
  origin.accept(loop);
  run_until([&] { return asked.exchange.held_bytes() == 0; });
  const std::string piece(32768, 'x');
  while (asked.exchange.send_body(piece, false)) {  // until the kernel accepts no more
  }
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kStalled);
  EXPECT_FALSE(asked.exchange.waited_for_owner());
}

TEST_F(PoolFailureTest, RefusesGarbageAndOversizedHeads) {
  for (const std::string& rogue :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), "HTTP/1.1 200 OK\r\n" + std::string(40000, 'x')}) {
    FakeOrigin origin;
    make({origin.name()});
    Asked asked;
    get_from(origin, asked.exchange);
    origin.write(rogue);
    run_until_failed(asked.seen);
    EXPECT_EQ(asked.seen.failure, UpstreamFailure::kBadResponse);
    TearDown();
  }
}

TEST_F(PoolFailureTest, ATruncatedBodyIsAFailure) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  origin.close();
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kTruncated);
  EXPECT_EQ(asked.seen.body, "half");
}

TEST_F(PoolFailureTest, BadAnswersInARowCloseAnEndpointAndAnAnswerOpensIt) {
  FakeOrigin origin;
  make({origin.name()});
  const auto ask = [&](std::string_view answer) {
    Asked asked;
    get_from(origin, asked.exchange);
    origin.write(answer);
    origin.close();
    run_until([&] { return asked.seen.complete || asked.seen.failure != UpstreamFailure::kNone; });
  };
  const Endpoint& endpoint = upstream->at(0);
  ask("garbage, and enough of it\r\n");
  ask("garbage, and enough of it\r\n");
  EXPECT_TRUE(endpoint.available(loop.now()));
  ask("HTTP/1.0 200 OK\r\n\r\n");
  for (int i = 0; i < 3; ++i) ask("garbage, and enough of it\r\n");
  EXPECT_FALSE(endpoint.available(loop.now()));
  ask("HTTP/1.0 200 OK\r\n\r\n");  // ejected, but the only endpoint: still used
  EXPECT_TRUE(endpoint.available(loop.now()));
}

}  // namespace
}  // namespace weir::upstream
