#include "upstream/pool.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/pool_testing.h"

// Connections over real sockets: kept, bounded, shared by two loops.

namespace weir::upstream {
namespace {

TEST_F(UpstreamPoolTest, CarriesARequestAndItsResponse) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.exchange));
  origin.accept(loop);
  EXPECT_EQ(origin.read_head(loop), "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.seen.body, "hello");
  EXPECT_FALSE(asked.exchange.active());
  EXPECT_EQ(pool->idle(), 1U);
}

TEST_F(UpstreamPoolTest, UsesAKeptConnectionAgain) {
  FakeOrigin origin;
  make({origin.name()});
  for (int i = 0; i < 3; ++i) {
    Asked asked;
    ASSERT_TRUE(get(asked.exchange));
    if (i == 0) origin.accept(loop);
    origin.read_head(loop);
    origin.write("HTTP/1.1 204 No Content\r\n\r\n");
    run_until([&] { return asked.seen.complete; });
  }
  EXPECT_EQ(upstream->connections(), 1U);
  EXPECT_FALSE(origin.has_caller());
}

TEST_F(UpstreamPoolTest, ConnectionsAreBounded) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.max_connections = 1;
  make({origin.name()}, config);
  Asked one;
  Asked two;
  ASSERT_TRUE(get(one.exchange));
  EXPECT_EQ(get(two.exchange).error(), UpstreamFailure::kNoConnection);
  one.exchange.cancel();
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
  Result<void, UpstreamFailure> get_on_other(Exchange& exchange) {
    put_head(*other, exchange, kGet);
    return other->start(exchange, {.method = http::Method::kGet});
  }

  std::uint64_t unserved() const {
    return upstream->at(0).failures[index_of(UpstreamFailure::kNoConnection)].load();
  }

  io::Loop other_loop;
  std::unique_ptr<UpstreamPool> other;
};

TEST_F(TwoLoopsTest, AnIdleConnectionOfAnotherLoopMakesRoom) {
  FakeOrigin origin;
  make_two(origin.name(), 1);
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(get_on_other(asked.exchange));  // it waits: the bound is reached, but by an idle one
  EXPECT_EQ(upstream->waiting(), 1U);
  for (int i = 0; i < 1000 && !origin.has_caller(); ++i) {
    loop.run_once();
    other_loop.run_once();
  }
  origin.accept(other_loop);
  origin.read_head(other_loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  for (int i = 0; i < 1000 && !asked.seen.complete; ++i) other_loop.run_once();
  EXPECT_EQ(asked.seen.body, "hi");
  EXPECT_EQ(upstream->waiting(), 0U);
  EXPECT_EQ(upstream->connections(), 1U);
  EXPECT_EQ(unserved(), 0U) << "to wait is no failure";
}

TEST_F(TwoLoopsTest, OneWhoWaitsMayBeCancelled) {
  FakeOrigin origin;
  make_two(origin.name(), 1);
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(get_on_other(asked.exchange));
  asked.exchange.cancel();
  EXPECT_EQ(upstream->waiting(), 0U);
  loop.run_once();
  EXPECT_EQ(pool->idle(), 1U) << "nobody is hungry any more";
}

TEST_F(TwoLoopsTest, WhenAllAreBusyTheAnswerComesAtOnce) {
  FakeOrigin origin;
  make_two(origin.name(), 1);
  Asked one;
  ASSERT_TRUE(get(one.exchange));
  Asked two;
  const auto refused = get_on_other(two.exchange);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), UpstreamFailure::kNoConnection);
  EXPECT_EQ(unserved(), 1U);
  one.exchange.cancel();
}

}  // namespace
}  // namespace weir::upstream
