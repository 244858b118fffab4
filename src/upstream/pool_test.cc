#include "upstream/pool.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/pool_testing.h"

// Connections over real sockets: reused, bounded, shared by two loops.

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

TEST_F(UpstreamPoolTest, CriticalRequestsFindWhatOrdinaryOnesLeave) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.max_connections = 4;
  make({origin.name()}, config, 8);  // of which at most a quarter are reserved
  Asked ordinary[4];
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(get(ordinary[i].exchange));
  EXPECT_EQ(get(ordinary[3].exchange).error(), UpstreamFailure::kNoConnection);
  for (int i = 0; i < 3; ++i) origin.accept_another(loop);
  Asked critical;
  ASSERT_TRUE(get(critical.exchange, io::Access::kCritical));
  Asked too_many;
  EXPECT_EQ(get(too_many.exchange, io::Access::kCritical).error(), UpstreamFailure::kNoConnection);
  origin.accept_another(loop);
  EXPECT_EQ(origin.read_head(loop), kGet);
  origin.write("HTTP/1.1 204 No Content\r\n\r\n");
  run_until([&] { return critical.seen.complete && upstream->connections() == 3; });
  EXPECT_EQ(pool->idle(), 0U) << "ordinary requests would take it";
  ASSERT_TRUE(get(critical.exchange, io::Access::kCritical));
  critical.exchange.cancel();
  for (int i = 0; i < 3; ++i) ordinary[i].exchange.cancel();
}

TEST_F(UpstreamPoolTest, BuffersAndRegionsAreKeptForCriticalRequests) {
  UpstreamMemory few(3, 3, 64 * 1024, 32 * 1024, 2, 1);
  FakeOrigin origin;
  make({origin.name()});
  UpstreamPool small(loop, 0, *upstream, few, limits);
  Asked asked[4];
  ASSERT_TRUE(small.open(asked[0].exchange));
  ASSERT_TRUE(small.open(asked[1].exchange));
  EXPECT_FALSE(small.open(asked[2].exchange));
  ASSERT_TRUE(small.open(asked[2].exchange, io::Access::kCritical));
  EXPECT_FALSE(small.open(asked[3].exchange, io::Access::kCritical));
  for (int i = 0; i < 3; ++i) asked[i].exchange.cancel();

  std::byte* const first = few.regions.acquire(1, io::Access::kOrdinary);
  std::byte* const second = few.regions.acquire(1, io::Access::kOrdinary);
  for (const io::Access access : {io::Access::kOrdinary, io::Access::kCritical}) {
    Asked one;
    put_head(small, one.exchange, kGet, access);
    ASSERT_TRUE(small.start(one.exchange, {.method = http::Method::kGet}));
    origin.accept(loop);
    origin.read_head(loop);
    origin.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    run_until([&] { return one.seen.complete || one.seen.failure != UpstreamFailure::kNone; });
    const bool critical = access == io::Access::kCritical;
    EXPECT_EQ(one.seen.failure, critical ? UpstreamFailure::kNone : UpstreamFailure::kNoBuffer);
    EXPECT_EQ(one.seen.complete, critical);
  }
  few.regions.release(1, first);
  few.regions.release(1, second);
  small.stop();
  run_until([&] { return small.stopped(); });
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
  ASSERT_TRUE(get_on_other(asked.exchange));  // blocked: an idle connection fills the bound
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
