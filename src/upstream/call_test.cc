#include "upstream/call.h"

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/dispatcher_testing.h"

// One request and its response: bodies, trailers, interim heads, tunnels, backpressure both ways.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

class CallTest : public DispatcherTest {};

TEST_F(CallTest, CarriesARequestAndItsResponse) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.seen.body, "hello");
  EXPECT_FALSE(asked.call.active());
  EXPECT_EQ(asked.call.attempts(), 1U);
  EXPECT_EQ(asked.call.endpoint(), &endpoint());
  EXPECT_NE(asked.call.sent_at(), TimePoint{});
  EXPECT_EQ(asked.call.held_for(), Duration(0));
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
  EXPECT_EQ(counters().attempts.get(), 1U);
  EXPECT_EQ(counters().answered.get(), 1U);
  EXPECT_EQ(counters().retries.get(), 0U);
}

TEST_F(CallTest, ACallCanBeUsedAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(get(asked.call));
    if (i == 0) origin.accept(loop);
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write(kNoContent);
    run_until([&] { return asked.seen.ends == i + 1; });
  }
  EXPECT_EQ(counters().connects.get(), 1U);
}

TEST_F(CallTest, HoldsTheUpstreamBackWhenTheOwnerTakesLess) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_at_most = 3;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  run_until([&] { return asked.seen.body == "hel"; });
  EXPECT_FALSE(asked.seen.complete);
  asked.call.resume();
  EXPECT_EQ(asked.seen.body, "hello");
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, ALargeBodyReachesAnOwnerThatTakesLittle) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_at_most = 1000;
  get_from(origin, asked.call);
  std::string body(200'000, ' ');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 23);
  const std::string head =
      "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n";
  origin.write(head);
  std::size_t written = 0;
  for (int i = 0; i < 5000 && !asked.seen.complete; ++i) {
    if (written < body.size()) {
      const std::size_t piece = std::min<std::size_t>(8192, body.size() - written);
      origin.write(std::string_view(body).substr(written, piece));
      written += piece;
    }
    loop.run_once();
    asked.call.resume();
    asked.call.resume();  // not paused: nothing happens
  }
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_TRUE(asked.seen.body == body);
}

TEST_F(CallTest, SendsABodyWithALength) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 6}));
  EXPECT_FALSE(asked.call.send_body({}, false)) << "the head is not sent";
  origin.accept(loop);
  run_until([&] { return asked.seen.writable == 1; });
  EXPECT_TRUE(asked.call.send_body("abc", false));
  EXPECT_TRUE(asked.call.send_body("def", true));
  const std::string head = text_of({.length = 6}) + "\r\n";
  EXPECT_EQ(origin.read(loop, head.size() + 6), head + "abcdef");
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, SendsTheBodyOnAKeptConnectionAtOnce) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 3}));
  EXPECT_TRUE(asked.call.send_body({}, false));
  EXPECT_TRUE(asked.call.send_body("abc", true));
  const std::string head = text_of({.length = 3}) + "\r\n";
  EXPECT_EQ(origin.read(loop, head.size() + 3), head + "abc");
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.writable, 0);
}

TEST_F(CallTest, StreamsAChunkedBodyWithTrailersBothWays) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  const Request request{.framing = RequestFraming::kChunked};
  ASSERT_TRUE(ask(asked.call, request));
  EXPECT_FALSE(asked.call.send_body("abc", false));
  origin.accept(loop);
  run_until([&] { return asked.seen.writable == 1; });
  const http::HeaderView trailers[] = {{"x-sum", "1"}, {"x-end", ""}};
  EXPECT_TRUE(asked.call.send_trailers(trailers));
  const std::string all = text_of(request) + "\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\nx-end: \r\n\r\n";
  EXPECT_EQ(origin.read(loop, all.size()), all);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-sum: 1\r\n\r\n");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.trailers, 1U);
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, TrailersOfABodyWithALengthAreDropped) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 3}));
  EXPECT_TRUE(asked.call.send_body("abc", false));
  const http::HeaderView trailer{"x-sum", "1"};
  EXPECT_TRUE(asked.call.send_trailers({&trailer, 1}));
  const std::string all = text_of({.length = 3}) + "\r\nabc";
  EXPECT_EQ(origin.read(loop, all.size()), all);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, TrailersThatFitInNoBlockAreDropped) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.framing = RequestFraming::kChunked}));
  const std::string value(memory.bodies.block_bytes(), 'v');
  const http::HeaderView trailer{"x-sum", value};
  EXPECT_TRUE(asked.call.send_trailers({&trailer, 1}));
  const std::string all = text_of({.framing = RequestFraming::kChunked}) + "\r\n0\r\n\r\n";
  EXPECT_EQ(origin.read(loop, all.size()), all);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTest, AHeadThatIsNotTakenComesAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_heads = false;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  run_until([&] { return asked.seen.heads == 1; });
  loop.run_once();
  EXPECT_EQ(asked.seen.heads, 1);
  asked.call.resume();
  EXPECT_EQ(asked.seen.heads, 2);
  EXPECT_EQ(asked.seen.body, "");
  asked.seen.take_heads = true;
  asked.call.resume();
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.seen.body, "hi");
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_EQ(counters().answered.get(), 1U);
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, TrailersThatAreNotTakenComeAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_trailers = false;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\na: b\r\n\r\n");
  run_until([&] { return asked.seen.body == "hi"; });
  loop.run_once();
  EXPECT_FALSE(asked.seen.complete);
  asked.seen.take_trailers = true;
  asked.call.resume();
  EXPECT_EQ(asked.seen.trailers, 1U);
  EXPECT_TRUE(asked.seen.complete);
}

TEST_F(CallTest, TheHeadsBlockGoesBackWhenTheAnswerBegins) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  EXPECT_EQ(memory.heads.stats().used, 1U);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  run_until([&] { return asked.seen.status == 200U; });
  EXPECT_EQ(memory.heads.stats().used, 0U);
  origin.write("hi");
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTest, InterimHeadsAreDeliveredBeforeTheFinalOne) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
  run_until([&] { return asked.seen.interim.size() == 2; });
  EXPECT_EQ(asked.seen.interim, (std::vector<unsigned>{103, 102}));
  EXPECT_EQ(asked.seen.heads, 0);
  EXPECT_EQ(counters().answered.get(), 0U) << "it has not answered";
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTest, AnUpstreamThatSendsInterimHeadsWithoutEndIsRefused) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  for (std::uint32_t i = 0; i <= limits.informational_max; ++i) {
    origin.write("HTTP/1.1 103 Early Hints\r\n\r\n");
  }
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kBadResponse);
}

TEST_F(CallTest, AnEarlyAnswerEndsTheRequestAndItsConnection) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 100}));
  origin.accept(loop);
  origin.read_head(loop);
  EXPECT_TRUE(asked.call.send_body("some", false));
  origin.write("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\n");
  run_until([&] { return asked.seen.status == 413U; });
  EXPECT_TRUE(asked.call.send_body("more", false)) << "both ways until it ends";
  EXPECT_EQ(asked.call.sent_at(), TimePoint{});
  origin.write("no");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "no");
  run_until([&] { return upstream->connections() == 0; });
}

TEST_F(CallTest, ARequestThatEndsAfterItsAnswerBeganKeepsTheConnection) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.framing = RequestFraming::kChunked}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbi");
  run_until([&] { return asked.seen.body == "bi"; });
  EXPECT_TRUE(asked.call.send_body("question", true));
  EXPECT_EQ(origin.read(loop, 18), "8\r\nquestion\r\n0\r\n\r\n");
  origin.write("di");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, ATunnelCarriesRawBytesBothWays) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(
      ask(asked.call,
          {.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\nhi");
  run_until([&] { return asked.seen.body == "hi"; });
  EXPECT_TRUE(asked.seen.tunnel);
  EXPECT_TRUE(asked.call.tunnel());
  EXPECT_TRUE(asked.call.send_body("raw", false));
  EXPECT_EQ(origin.read(loop, 3), "raw");
  origin.close();
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTest, ATunnelEndsOneSideAfterTheOther) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(
      ask(asked.call,
          {.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  run_until([&] { return asked.seen.tunnel; });
  EXPECT_TRUE(asked.call.send_body("last words", true));
  EXPECT_EQ(origin.read(loop, 11), "last words");  // followed by the end of the stream
  origin.write("answer");
  run_until([&] { return asked.seen.body == "answer"; });
  EXPECT_FALSE(asked.seen.complete);
  origin.close();
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallTest, AnUpgradeThatIsDeclinedIsAnOrdinaryAnswer) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(
      ask(asked.call,
          {.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 426 Upgrade Required\r\ncontent-length: 2\r\n\r\nno");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "no");
  EXPECT_FALSE(asked.seen.tunnel);
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(CallTest, WithoutAHeadBlockNothingIsOpened) {
  UpstreamMemory few({.heads = 2,
                      .head_bytes = 4096,
                      .bodies = 1,
                      .body_bytes = 4096,
                      .regions = 1,
                      .region_bytes = 4096,
                      .sessions = 0,
                      .session_bytes = 64,
                      .loops = 2,
                      .reserved = 1});
  FakeOrigin origin;
  make({origin.name()});
  Dispatcher small({.loop = loop,
                    .loop_index = 1,
                    .upstream = *upstream,
                    .memory = few,
                    .response_limits = limits,
                    .rng = Rng(9)});
  Asked asked[3];
  EXPECT_TRUE(small.open(asked[0].call));
  EXPECT_FALSE(small.open(asked[1].call)) << "the last one is reserved";
  EXPECT_TRUE(small.open(asked[1].call, io::Access::kCritical));
  EXPECT_FALSE(small.open(asked[2].call, io::Access::kCritical));
  for (int i = 0; i < 2; ++i) asked[i].call.cancel();
  small.stop();
  run_until([&] { return small.stopped(); });
}

TEST_F(CallTest, WithoutABodyBlockTheRequestIsNotStarted) {
  FakeOrigin origin;
  make({origin.name()});
  std::vector<std::byte*> taken;
  while (std::byte* block = memory.bodies.acquire(0, io::Access::kOrdinary)) taken.push_back(block);
  Asked asked;
  const auto started = ask(asked.call, {.length = 3});
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error(), UpstreamFailure::kNoBuffer);
  EXPECT_FALSE(asked.call.active());
  for (std::byte* block : taken) memory.bodies.release(0, block);
}

TEST_F(CallTest, WithoutARegionTheAnswerIsNotRead) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  std::vector<std::byte*> taken;
  while (std::byte* block = memory.regions.acquire(0, io::Access::kOrdinary)) {
    taken.push_back(block);
  }
  origin.write(kNoContent);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kNoBuffer);
  for (std::byte* block : taken) memory.regions.release(0, block);
}

TEST_F(CallTest, RefusesInvalidAndOversizedHeads) {
  for (const std::string& rogue :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), "HTTP/1.1 200 OK\r\n" + std::string(40000, 'x')}) {
    FakeOrigin origin;
    UpstreamConfig config = plain();
    config.retry_budget_tokens_max = 0;
    make({origin.name()}, config);
    Asked asked;
    get_from(origin, asked.call);
    origin.write(rogue);
    run_until_ended(asked.seen);
    EXPECT_EQ(asked.seen.failure, UpstreamFailure::kBadResponse);
    TearDown();
  }
}

TEST_F(CallTest, ATruncatedBodyIsAFailure) {
  for (const bool by_reset : {false, true}) {
    FakeOrigin origin;
    make({origin.name()});
    Asked asked;
    get_from(origin, asked.call);
    origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
    run_until([&] { return asked.seen.body == "half"; });
    by_reset ? origin.reset() : origin.close();
    run_until_ended(asked.seen);
    EXPECT_EQ(asked.seen.failure, UpstreamFailure::kTruncated);
    TearDown();
  }
}

class AnswersThatBreakOff : public CallTest {
 protected:
  void ask_once(FakeOrigin& origin, bool complete) {
    Asked asked;
    get_from(origin, asked.call);
    origin.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nha");
    if (complete) origin.write("lf");
    origin.close();
    run_until_ended(asked.seen);
    EXPECT_EQ(asked.seen.status, 200U);
    EXPECT_EQ(asked.seen.complete, complete);
  }
};

TEST_F(AnswersThatBreakOff, EjectTheEndpointAlthoughTheirHeadsAreGood) {
  FakeOrigin origin;
  make({origin.name()});
  for (int i = 0; i < 3; ++i) ask_once(origin, false);
  EXPECT_EQ(endpoint().health().state(), policy::EndpointState::kEjected);
  EXPECT_EQ(endpoint().health().reason(), policy::HealthReason::kBadAnswers);
}

TEST_F(AnswersThatBreakOff, AreForgottenWithOneThatIsComplete) {
  FakeOrigin origin;
  make({origin.name()});
  for (const bool complete : {false, false, true, false, false}) ask_once(origin, complete);
  EXPECT_EQ(endpoint().health().state(), policy::EndpointState::kAvailable);
}

TEST_F(CallTest, ABodyWithoutALengthEndsWithTheConnectionUnlessThatWasReset) {
  for (const bool by_reset : {false, true}) {
    FakeOrigin origin;
    make({origin.name()});
    Asked asked;
    get_from(origin, asked.call);
    origin.write("HTTP/1.1 200 OK\r\n\r\nall");
    run_until([&] { return asked.seen.body == "all"; });
    by_reset ? origin.reset() : origin.close();
    run_until_ended(asked.seen);
    EXPECT_EQ(asked.seen.complete, !by_reset);
    TearDown();
  }
}

TEST_F(CallTest, TheEndpointOfAnEndedCallCanStillBeNamed) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
  run_until([&] { return asked.seen.complete && upstream->connections() == 0; });
  upstream->set_endpoints({}, loop.now());
  let_pass(milliseconds(60));  // nothing else uses it
  ASSERT_NE(asked.call.endpoint(), nullptr);
  EXPECT_EQ(asked.call.endpoint()->label(), origin.name().to_string());
}

}  // namespace
}  // namespace weir::upstream
