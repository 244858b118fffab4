#include "upstream/exchange.h"

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/pool_testing.h"

// A request and its response on the wire: bodies, trailers, tunnels, backpressure both ways.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

class ExchangeTest : public UpstreamPoolTest {};

TEST_F(ExchangeTest, HoldsTheUpstreamBackWhenTheOwnerTakesLess) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_at_most = 3;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  run_until([&] { return asked.seen.body == "hel"; });
  EXPECT_FALSE(asked.seen.complete);
  asked.exchange.resume();
  EXPECT_EQ(asked.seen.body, "hello");
  EXPECT_TRUE(asked.seen.complete);
}

TEST_F(ExchangeTest, StreamsAChunkedBodyWithTrailersBothWays) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  put_head(*pool, asked.exchange,
           "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange,
                          {.method = http::Method::kPost, .framing = RequestFraming::kChunked}));
  static_cast<void>(asked.exchange.send_body("abc", false));
  origin.accept(loop);
  run_until([&] { return asked.exchange.held_bytes() == 0; });
  EXPECT_EQ(asked.seen.writable, 1);
  EXPECT_TRUE(asked.exchange.send_body({}, true));
  const std::string all = origin.read(loop, 69);
  EXPECT_EQ(all.substr(all.find("\r\n\r\n") + 4), "3\r\nabc\r\n0\r\n\r\n");
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-sum: 1\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.trailers, 1U);
  EXPECT_EQ(pool->idle(), 1U);
}

TEST_F(ExchangeTest, AHeadThatIsNotTakenComesAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_heads = false;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  run_until([&] { return asked.seen.heads == 1; });
  loop.run_once();
  EXPECT_EQ(asked.seen.heads, 1);
  asked.exchange.resume();
  EXPECT_EQ(asked.seen.heads, 2);
  EXPECT_EQ(asked.seen.body, "");
  asked.seen.take_heads = true;
  asked.exchange.resume();
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.seen.body, "hi");
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_EQ(pool->idle(), 1U);
}

TEST_F(ExchangeTest, TrailersThatAreNotTakenComeAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_trailers = false;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\na: b\r\n\r\n");
  run_until([&] { return asked.seen.body == "hi"; });
  loop.run_once();
  EXPECT_FALSE(asked.seen.complete);
  asked.seen.take_trailers = true;
  asked.exchange.resume();
  EXPECT_EQ(asked.seen.trailers, 1U);
  EXPECT_TRUE(asked.seen.complete);
}

TEST_F(ExchangeTest, TheRequestsBufferGoesBackWhenTheAnswerBegins) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.exchange));
  EXPECT_EQ(memory.requests.stats().used, 1U);
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  run_until([&] { return asked.seen.status == 200U; });
  EXPECT_EQ(memory.requests.stats().used, 0U);
  origin.write("hi");
  run_until([&] { return asked.seen.complete; });
}

TEST_F(ExchangeTest, ASilentEventStreamIsNotEnded) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.first_byte_timeout = milliseconds(20);
  config.overall_timeout = milliseconds(40);
  make({origin.name()}, config);
  Asked asked;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
  run_until([&] { return asked.seen.status == 200U; });
  asked.exchange.lift_deadlines();
  for (int i = 0; i < 80; ++i) {
    loop.run_once();
    ::poll(nullptr, 0, 1);
  }
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kNone);
  origin.write("2\r\nhi\r\n0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "hi");
}

TEST_F(ExchangeTest, ATransferThatMovesOutlastsEveryTimeout) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.first_byte_timeout = config.inactivity_timeout = milliseconds(250);
  make({origin.name()}, config);
  Asked asked;
  get_from(origin, asked.exchange);
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
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kNone);
}

TEST_F(ExchangeTest, AnOwnerThatIsSlowIsNotTheUpstreamsSilence) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.first_byte_timeout = config.inactivity_timeout = milliseconds(100);
  make({origin.name()}, config);
  Asked asked;
  asked.seen.take_at_most = 0;
  put_head(*pool, asked.exchange, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange,
                          {.method = http::Method::kPost, .framing = RequestFraming::kLength}));
  origin.accept(loop);
  const auto let_pass = [&](Duration time) {
    const TimePoint until = loop.now() + time;
    run_until([&] { return loop.now() >= until; });
  };
  let_pass(milliseconds(250));  // the request body is late
  EXPECT_TRUE(asked.exchange.send_body("hi", true));
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes");
  run_until([&] { return asked.seen.status == 200U; });
  let_pass(milliseconds(250));  // the owner does not accept the response
  asked.seen.take_at_most = 3;
  asked.exchange.resume();
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kNone);
}

TEST_F(ExchangeTest, TheTimeLeftIsThatOfTheMomentWhenTheHeadIsWritten) {
  constexpr std::string_view kHead = "GET / HTTP/1.1\r\nx-weir-deadline-ms: 00000000\r\n\r\n";
  constexpr std::size_t kAt = kHead.size() - 4 - Exchange::kTimeLeftDigits;
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(pool->open(asked.exchange));
  std::copy(kHead.begin(), kHead.end(), asked.exchange.space().begin());
  asked.exchange.commit(kHead.size(), kAt);
  const TimePoint deadline = loop.now() + std::chrono::minutes(10);
  const auto let_pass = [&](Duration time) {
    const TimePoint until = loop.now() + time;
    run_until([&] { return loop.now() >= until; });
    return std::chrono::duration_cast<milliseconds>(deadline - loop.now()).count();
  };
  const auto told = [&] {
    const std::string head = origin.read_head(loop);
    EXPECT_EQ(head.substr(0, kAt), kHead.substr(0, kAt));
    EXPECT_EQ(head.substr(kAt + Exchange::kTimeLeftDigits), "\r\n\r\n");
    return std::stol(head.substr(kAt, Exchange::kTimeLeftDigits));
  };
  const long before = let_pass(milliseconds(20));
  ASSERT_TRUE(pool->start(asked.exchange, {.deadline = deadline}));
  const long first = told();
  EXPECT_LE(first, before);
  EXPECT_GT(first, 0);
  const long again = let_pass(milliseconds(20));
  origin.reset();  // the idle connection was dead: the head is sent again
  origin.accept(loop);
  EXPECT_LE(told(), again);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
}

TEST_F(ExchangeTest, NoTimeLeftIsZero) {
  constexpr std::string_view kHead = "GET / HTTP/1.1\r\nt: 00000000\r\n\r\n";
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(pool->open(asked.exchange));
  std::copy(kHead.begin(), kHead.end(), asked.exchange.space().begin());
  asked.exchange.commit(kHead.size(), kHead.size() - 4 - Exchange::kTimeLeftDigits);
  ASSERT_TRUE(pool->start(asked.exchange, {.deadline = loop.now() - milliseconds(20)}));
  EXPECT_EQ(origin.read_head(loop), "GET / HTTP/1.1\r\nt:        0\r\n\r\n");
  run_until_failed(asked.seen);
}

TEST_F(ExchangeTest, CancelLeavesNothingBehind) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.exchange);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  run_until([&] { return asked.seen.body == "half"; });
  asked.exchange.cancel();
  EXPECT_FALSE(asked.exchange.active());
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_FALSE(asked.seen.complete);
}

TEST_F(ExchangeTest, ATunnelCarriesRawBytesBothWays) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  put_head(*pool, asked.exchange,
           "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange, {.method = http::Method::kGet, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\nhi");
  run_until([&] { return asked.seen.body == "hi"; });
  EXPECT_TRUE(asked.seen.tunnel);
  EXPECT_TRUE(asked.exchange.send_body("raw", false));
  EXPECT_EQ(origin.read(loop, 3), "raw");
  origin.close();
  run_until([&] { return asked.seen.complete; });
}

TEST_F(ExchangeTest, ATunnelEndsOneSideAfterTheOther) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  put_head(*pool, asked.exchange,
           "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  ASSERT_TRUE(pool->start(asked.exchange, {.method = http::Method::kGet, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  run_until([&] { return asked.seen.tunnel; });
  EXPECT_TRUE(asked.exchange.send_body("last words", true));
  EXPECT_EQ(origin.read(loop, 11), "last words");  // followed by the end of the stream
  origin.write("answer");
  run_until([&] { return asked.seen.body == "answer"; });
  EXPECT_FALSE(asked.seen.complete);
  origin.close();
  run_until([&] { return asked.seen.complete; });
}

}  // namespace
}  // namespace weir::upstream
