// Exchanges over real sockets with an origin that the test plays by hand.
#include "upstream/pool.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "weir/io/address.h"
#include "weir/io/fd.h"
#include "weir/io/listener.h"

namespace weir {
namespace {

using std::chrono::milliseconds;

/// An origin server whose every move a test makes by hand, on a real socket.
class FakeOrigin {
 public:
  FakeOrigin() {
    auto fd = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
    EXPECT_TRUE(fd.has_value());
    listening_ = std::move(fd).value();
  }
  [[nodiscard]] io::SocketName name() const { return io::bound_name(listening_.get()); }

  /// Steps the loop until a connection arrives.
  void accept(io::Loop& loop) {
    for (int i = 0; i < 1000 && !readable(listening_.get()); ++i) loop.run_once();
    connection_ = io::Fd(::accept(listening_.get(), nullptr, nullptr));
    ASSERT_GE(connection_.get(), 0);
  }
  [[nodiscard]] bool has_caller() const { return readable(listening_.get()); }

  /// Steps the loop until so many bytes, or an end, came in.
  std::string read(io::Loop& loop, std::size_t at_least) {
    std::string got;
    for (int i = 0; i < 2000 && got.size() < at_least; ++i) {
      loop.run_once();
      if (!readable(connection_.get())) continue;
      char buffer[65536];
      const auto n = ::recv(connection_.get(), buffer, sizeof buffer, 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<std::size_t>(n));
    }
    return got;
  }
  /// Reads one request head.
  std::string read_head(io::Loop& loop) {
    std::string got;
    for (int i = 0; i < 2000 && got.find("\r\n\r\n") == std::string::npos; ++i) {
      got += read(loop, 1);
    }
    return got;
  }
  void write(std::string_view bytes) const {
    ASSERT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void close() { connection_ = io::Fd(); }
  void reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(connection_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void stop_listening() { listening_ = io::Fd(); }

 private:
  static bool readable(int fd) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&p, 1, 1) == 1;
  }
  io::Fd listening_;
  io::Fd connection_;
};

class Recorder final : public ExchangeEvents {
 public:
  bool on_upstream_head(const h1::ResponseHead& head) override {
    ++heads;
    if (!take_heads) return false;
    status = head.status;
    tunnel = head.tunnel;
    return true;
  }
  std::size_t on_upstream_body(std::string_view bytes) override {
    const std::size_t n = std::min(bytes.size(), take_at_most);
    body += bytes.substr(0, n);
    return n;
  }
  bool on_upstream_trailers(const HeaderList& list) override {
    if (!take_trailers) return false;
    trailers = list.size();
    return true;
  }
  void on_upstream_complete() override { complete = true; }
  void on_upstream_writable() override { ++writable; }
  void on_upstream_failed(UpstreamFailure why) override { failure = why; }

  unsigned status = 0;
  std::string body;
  std::size_t take_at_most = ~std::size_t{0};
  std::size_t trailers = 0;
  int writable = 0;
  int heads = 0;
  bool take_heads = true;
  bool take_trailers = true;
  bool tunnel = false;
  bool complete = false;
  UpstreamFailure failure = UpstreamFailure::kNone;
};

class UpstreamPoolTest : public ::testing::Test {
 protected:
  void make(std::vector<io::SocketName> endpoints, UpstreamConfig config = {}) {
    config.name = "u";
    upstream = std::make_unique<Upstream>(config, endpoints);
    pool = std::make_unique<UpstreamPool>(loop, 0, *upstream, memory, limits);
  }
  void TearDown() override {
    if (!pool) return;
    pool->stop();
    for (int i = 0; i < 100 && !pool->stopped(); ++i) loop.run_once();
    pool.reset();
    loop.run_once();
    EXPECT_EQ(memory.requests.stats().used, 0U);
    EXPECT_EQ(memory.regions.stats().used, 0U);
    EXPECT_EQ(upstream->connections(), 0U);
  }
  void put_head(Exchange& exchange, std::string_view head) {
    ASSERT_TRUE(pool->open(exchange));
    ASSERT_LE(head.size(), exchange.space().size());
    std::copy(head.begin(), head.end(), exchange.space().begin());
    exchange.commit(head.size());
  }
  Result<void, UpstreamFailure> get(Exchange& exchange) {
    put_head(exchange, "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    return pool->start(exchange, {.method = Method::kGet});
  }
  template <class Done>
  void run_until(Done done) {
    for (int i = 0; i < 3000 && !done(); ++i) {
      loop.run_once();
      ::poll(nullptr, 0, 1);
    }
    ASSERT_TRUE(done());
  }

  io::Loop loop;
  UpstreamMemory memory{16, 16, 64 * 1024, 32 * 1024, 2};
  HttpLimits limits;
  std::unique_ptr<Upstream> upstream;
  std::unique_ptr<UpstreamPool> pool;
};

TEST_F(UpstreamPoolTest, CarriesARequestAndItsResponse) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  EXPECT_EQ(origin.read_head(loop), "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
  run_until([&] { return seen.complete; });
  EXPECT_EQ(seen.status, 200U);
  EXPECT_EQ(seen.body, "hello");
  EXPECT_FALSE(exchange.active());
  EXPECT_EQ(pool->idle(), 1U);
}

TEST_F(UpstreamPoolTest, UsesAKeptConnectionAgain) {
  FakeOrigin origin;
  make({origin.name()});
  for (int i = 0; i < 3; ++i) {
    Recorder seen;
    Exchange exchange(seen);
    ASSERT_TRUE(get(exchange));
    if (i == 0) origin.accept(loop);
    origin.read_head(loop);
    origin.write("HTTP/1.1 204 No Content\r\n\r\n");
    run_until([&] { return seen.complete; });
  }
  EXPECT_EQ(upstream->connections(), 1U);
  EXPECT_FALSE(origin.has_caller());
}

TEST_F(UpstreamPoolTest, RetriesASafeRequestOnceWhenAKeptConnectionDied) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder first;
  Exchange one(first);
  ASSERT_TRUE(get(one));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 204 No Content\r\n\r\n");
  run_until([&] { return first.complete; });

  Recorder second;
  Exchange two(second);
  ASSERT_TRUE(get(two));
  origin.read_head(loop);
  origin.reset();  // without a word
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return second.complete; });
  EXPECT_EQ(second.status, 200U);
  EXPECT_EQ(two.attempts(), 2U);
}

TEST_F(UpstreamPoolTest, DoesNotRepeatAPostThatMayHaveBeenSeen) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder first;
  Exchange one(first);
  ASSERT_TRUE(get(one));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 204 No Content\r\n\r\n");
  run_until([&] { return first.complete; });

  Recorder second;
  Exchange two(second);
  put_head(two, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
  ASSERT_TRUE(pool->start(two, {.method = Method::kPost}));
  origin.read_head(loop);
  origin.close();
  run_until([&] { return second.failure != UpstreamFailure::kNone; });
  EXPECT_EQ(second.failure, UpstreamFailure::kClosedEarly);
  EXPECT_FALSE(origin.has_caller());
}

TEST_F(UpstreamPoolTest, TriesTheNextEndpointWhenOneRefuses) {
  FakeOrigin dead;
  FakeOrigin alive;
  const io::SocketName dead_name = dead.name();
  dead.stop_listening();
  make({dead_name, alive.name()});
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  alive.accept(loop);
  alive.read_head(loop);
  alive.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return seen.complete; });
  EXPECT_FALSE(upstream->at(0).open(loop.now()));
}

TEST_F(UpstreamPoolTest, SaysRefusedWhenNobodyListens) {
  FakeOrigin dead;
  const io::SocketName name = dead.name();
  dead.stop_listening();
  make({name});
  Recorder seen;
  Exchange exchange(seen);
  const auto started = get(exchange);
  if (started) run_until([&] { return seen.failure != UpstreamFailure::kNone; });
  EXPECT_EQ(started ? seen.failure : started.error(), UpstreamFailure::kConnectRefused);
  EXPECT_FALSE(exchange.active());
}

TEST_F(UpstreamPoolTest, GivesUpWhenTheFirstByteTakesTooLong) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.first_byte_timeout = milliseconds(30);
  make({origin.name()}, config);
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  run_until([&] { return seen.failure != UpstreamFailure::kNone; });
  EXPECT_EQ(seen.failure, UpstreamFailure::kFirstByteTimeout);
}

TEST_F(UpstreamPoolTest, RefusesGarbageAndOversizedHeads) {
  for (const std::string& rogue :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), "HTTP/1.1 200 OK\r\n" + std::string(40000, 'x')}) {
    FakeOrigin origin;
    make({origin.name()});
    Recorder seen;
    Exchange exchange(seen);
    ASSERT_TRUE(get(exchange));
    origin.accept(loop);
    origin.read_head(loop);
    origin.write(rogue);
    run_until([&] { return seen.failure != UpstreamFailure::kNone; });
    EXPECT_EQ(seen.failure, UpstreamFailure::kBadResponse);
    TearDown();
  }
}

TEST_F(UpstreamPoolTest, HoldsTheUpstreamBackWhenTheOwnerTakesLess) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  seen.take_at_most = 3;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  run_until([&] { return seen.body == "hel"; });
  EXPECT_FALSE(seen.complete);
  exchange.resume();
  EXPECT_EQ(seen.body, "hello");
  EXPECT_TRUE(seen.complete);
}

TEST_F(UpstreamPoolTest, StreamsAChunkedBodyWithTrailersBothWays) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  put_head(exchange, "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  ASSERT_TRUE(
      pool->start(exchange, {.method = Method::kPost, .framing = RequestFraming::kChunked}));
  static_cast<void>(exchange.send_body("abc", false));
  origin.accept(loop);
  run_until([&] { return exchange.held_bytes() == 0; });
  EXPECT_EQ(seen.writable, 1);
  EXPECT_TRUE(exchange.send_body({}, true));
  const std::string all = origin.read(loop, 69);
  EXPECT_EQ(all.substr(all.find("\r\n\r\n") + 4), "3\r\nabc\r\n0\r\n\r\n");
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-sum: 1\r\n\r\n");
  run_until([&] { return seen.complete; });
  EXPECT_EQ(seen.trailers, 1U);
  EXPECT_EQ(pool->idle(), 1U);
}

TEST_F(UpstreamPoolTest, ATruncatedBodyIsAFailure) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  origin.close();
  run_until([&] { return seen.failure != UpstreamFailure::kNone; });
  EXPECT_EQ(seen.failure, UpstreamFailure::kTruncated);
  EXPECT_EQ(seen.body, "half");
}

TEST_F(UpstreamPoolTest, CancelLeavesNothingBehind) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  run_until([&] { return seen.body == "half"; });
  exchange.cancel();
  EXPECT_FALSE(exchange.active());
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_FALSE(seen.complete);
}

TEST_F(UpstreamPoolTest, ConnectionsAreBounded) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.max_connections = 1;
  make({origin.name()}, config);
  Recorder a;
  Recorder b;
  Exchange one(a);
  Exchange two(b);
  ASSERT_TRUE(get(one));
  EXPECT_EQ(get(two).error(), UpstreamFailure::kNoConnection);
  one.cancel();
}

TEST_F(UpstreamPoolTest, ATunnelCarriesRawBytesBothWays) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  put_head(exchange, "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  ASSERT_TRUE(pool->start(exchange, {.method = Method::kGet, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\nhi");
  run_until([&] { return seen.body == "hi"; });
  EXPECT_TRUE(seen.tunnel);
  EXPECT_TRUE(exchange.send_body("raw", false));
  EXPECT_EQ(origin.read(loop, 3), "raw");
  origin.close();
  run_until([&] { return seen.complete; });
}

TEST_F(UpstreamPoolTest, ATunnelEndsOneSideAfterTheOther) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  put_head(exchange, "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  ASSERT_TRUE(pool->start(exchange, {.method = Method::kGet, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  run_until([&] { return seen.tunnel; });
  EXPECT_TRUE(exchange.send_body("last words", true));
  EXPECT_EQ(origin.read(loop, 11), "last words");  // and then the end of it
  origin.write("answer");
  run_until([&] { return seen.body == "answer"; });
  EXPECT_FALSE(seen.complete);
  origin.close();
  run_until([&] { return seen.complete; });
}

TEST_F(UpstreamPoolTest, AHeadThatIsNotTakenComesAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  seen.take_heads = false;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  run_until([&] { return seen.heads == 1; });
  loop.run_once();
  EXPECT_EQ(seen.heads, 1);
  exchange.resume();
  EXPECT_EQ(seen.heads, 2);
  EXPECT_EQ(seen.body, "");
  seen.take_heads = true;
  exchange.resume();
  EXPECT_EQ(seen.status, 200U);
  EXPECT_EQ(seen.body, "hi");
  EXPECT_TRUE(seen.complete);
  EXPECT_EQ(pool->idle(), 1U);
}

TEST_F(UpstreamPoolTest, TrailersThatAreNotTakenComeAgain) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  seen.take_trailers = false;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\na: b\r\n\r\n");
  run_until([&] { return seen.body == "hi"; });
  loop.run_once();
  EXPECT_FALSE(seen.complete);
  seen.take_trailers = true;
  exchange.resume();
  EXPECT_EQ(seen.trailers, 1U);
  EXPECT_TRUE(seen.complete);
}

TEST_F(UpstreamPoolTest, TheRequestsBufferGoesBackWhenTheAnswerBegins) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  EXPECT_EQ(memory.requests.stats().used, 1U);
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  run_until([&] { return seen.status == 200U; });
  EXPECT_EQ(memory.requests.stats().used, 0U);
  origin.write("hi");
  run_until([&] { return seen.complete; });
}

TEST_F(UpstreamPoolTest, ASilentEventStreamIsNotEnded) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.first_byte_timeout = milliseconds(20);
  config.overall_timeout = milliseconds(40);
  make({origin.name()}, config);
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get(exchange));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
  run_until([&] { return seen.status == 200U; });
  exchange.lift_deadlines();
  for (int i = 0; i < 80; ++i) {
    loop.run_once();
    ::poll(nullptr, 0, 1);
  }
  EXPECT_EQ(seen.failure, UpstreamFailure::kNone);
  origin.write("2\r\nhi\r\n0\r\n\r\n");
  run_until([&] { return seen.complete; });
  EXPECT_EQ(seen.body, "hi");
}

TEST_F(UpstreamPoolTest, APostDoesNotUseAConnectionThatHasEnded) {
  FakeOrigin origin;
  make({origin.name()});
  Recorder first;
  Exchange one(first);
  ASSERT_TRUE(get(one));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 204 No Content\r\n\r\n");
  run_until([&] { return first.complete; });
  origin.close();  // and the loop has no turn to notice it

  Recorder second;
  Exchange two(second);
  put_head(two, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
  ASSERT_TRUE(pool->start(two, {.method = Method::kPost}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return second.complete; });
  EXPECT_EQ(second.status, 200U);
  EXPECT_EQ(two.attempts(), 1U);
}

TEST_F(UpstreamPoolTest, BadAnswersInARowCloseAnEndpointAndAnAnswerOpensIt) {
  FakeOrigin origin;
  make({origin.name()});
  const auto ask = [&](std::string_view answer) {
    Recorder seen;
    Exchange exchange(seen);
    ASSERT_TRUE(get(exchange));
    origin.accept(loop);
    origin.read_head(loop);
    origin.write(answer);
    origin.close();
    run_until([&] { return seen.complete || seen.failure != UpstreamFailure::kNone; });
  };
  const Endpoint& endpoint = upstream->at(0);
  ask("garbage, and enough of it\r\n");
  ask("garbage, and enough of it\r\n");
  EXPECT_TRUE(endpoint.open(loop.now()));
  ask("HTTP/1.0 200 OK\r\n\r\n");
  for (int i = 0; i < 3; ++i) ask("garbage, and enough of it\r\n");
  EXPECT_FALSE(endpoint.open(loop.now()));
  ask("HTTP/1.0 200 OK\r\n\r\n");  // the only one there is: asked all the same
  EXPECT_TRUE(endpoint.open(loop.now()));
}

class TwoLoopsTest : public UpstreamPoolTest {
 protected:
  void make_two(const io::SocketName& origin, std::uint32_t connections_max) {
    UpstreamConfig config;
    config.max_connections = connections_max;
    make({origin}, config);
    other = std::make_unique<UpstreamPool>(other_loop, 1, *upstream, memory, limits);
  }
  void TearDown() override {
    other->stop();
    for (int i = 0; i < 100 && !other->stopped(); ++i) other_loop.run_once();
    other_loop.run_once();
    other.reset();
    UpstreamPoolTest::TearDown();
  }
  /// Leaves an idle connection on the first loop.
  void leave_one_idle(FakeOrigin& origin) {
    Recorder seen;
    Exchange exchange(seen);
    ASSERT_TRUE(get(exchange));
    origin.accept(loop);
    origin.read_head(loop);
    origin.write("HTTP/1.1 204 No Content\r\n\r\n");
    run_until([&] { return seen.complete; });
    ASSERT_EQ(pool->idle(), 1U);
  }
  Result<void, UpstreamFailure> get_on_other(Exchange& exchange) {
    EXPECT_TRUE(other->open(exchange));
    constexpr std::string_view kHead = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    std::copy(kHead.begin(), kHead.end(), exchange.space().begin());
    exchange.commit(kHead.size());
    return other->start(exchange, {.method = Method::kGet});
  }

  io::Loop other_loop;
  std::unique_ptr<UpstreamPool> other;
};

TEST_F(TwoLoopsTest, AnIdleConnectionOfAnotherLoopMakesRoom) {
  FakeOrigin origin;
  make_two(origin.name(), 1);
  leave_one_idle(origin);
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get_on_other(exchange));  // it waits: the bound is reached, but by an idle one
  EXPECT_EQ(upstream->hungry(), 1U);
  for (int i = 0; i < 1000 && !origin.has_caller(); ++i) {
    loop.run_once();
    other_loop.run_once();
  }
  origin.accept(other_loop);
  origin.read_head(other_loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  for (int i = 0; i < 1000 && !seen.complete; ++i) other_loop.run_once();
  EXPECT_EQ(seen.body, "hi");
  EXPECT_EQ(upstream->hungry(), 0U);
  EXPECT_EQ(upstream->connections(), 1U);
}

TEST_F(TwoLoopsTest, OneWhoWaitsMayBeCancelled) {
  FakeOrigin origin;
  make_two(origin.name(), 1);
  leave_one_idle(origin);
  Recorder seen;
  Exchange exchange(seen);
  ASSERT_TRUE(get_on_other(exchange));
  exchange.cancel();
  EXPECT_EQ(upstream->hungry(), 0U);
  loop.run_once();
  EXPECT_EQ(pool->idle(), 1U) << "nobody is hungry any more";
}

TEST_F(TwoLoopsTest, WhenAllAreBusyTheAnswerComesAtOnce) {
  FakeOrigin origin;
  make_two(origin.name(), 1);
  Recorder busy;
  Exchange one(busy);
  ASSERT_TRUE(get(one));
  Recorder seen;
  Exchange two(seen);
  const auto refused = get_on_other(two);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), UpstreamFailure::kNoConnection);
  one.cancel();
}

}  // namespace
}  // namespace weir
