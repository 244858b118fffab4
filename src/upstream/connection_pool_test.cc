#include "connection_pool.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "upstream/dispatcher_testing.h"

// Connections over real sockets: reused, bounded, queued for, shared by two loops, closed.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr std::string_view kLastAnswer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

class ConnectionPoolTest : public DispatcherTest {
 protected:
  static UpstreamConfig bounded(std::uint32_t connections_max) {
    UpstreamConfig config = plain();
    config.max_connections = connections_max;
    return config;
  }
};

TEST_F(ConnectionPoolTest, UsesTheConnectionThatWasUsedLast) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked[2];
  for (Asked& one : asked) {
    ASSERT_TRUE(get(one.call));
    origin.accept_another(loop);  // the connections are 1 and 2: 0 is none
    origin.read_head(loop);
  }
  origin.write(kNoContent);
  run_until([&] { return asked[1].seen.complete; });
  origin.back_to(1);
  origin.write(kNoContent);
  run_until([&] { return asked[0].seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 2U);
  for (int i = 0; i < 3; ++i) {
    Asked next;
    ASSERT_TRUE(get(next.call));
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write(kNoContent);
    run_until([&] { return next.seen.complete; });
  }
  EXPECT_EQ(counters().connects.get(), 2U);
}

TEST_F(ConnectionPoolTest, WhoFindsTheBoundReachedWaitsForAConnection) {
  FakeOrigin origin;
  make({origin.name()}, bounded(1));
  Asked asked[3];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  EXPECT_EQ(upstream->waiting(), 3U) << "the first one waits for its connection as well";
  EXPECT_EQ(endpoint().queue_stats().queued, 3U);
  origin.accept(loop);
  for (Asked& one : asked) {  // in the order in which they came
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    EXPECT_FALSE(one.seen.ended());
    origin.write(kNoContent);
    run_until([&] { return one.seen.complete; });
  }
  EXPECT_EQ(counters().connects.get(), 1U);
}

TEST_F(ConnectionPoolTest, ANewCallDoesNotOvertakeTheQueue) {
  FakeOrigin origin;
  make({origin.name()}, bounded(1));
  Asked first;
  Asked queued;
  Asked late;
  get_from(origin, first.call);
  ASSERT_TRUE(get(queued.call));
  first.seen.within(CallEvent::kComplete, [&] { ASSERT_TRUE(get(late.call)); });
  origin.write(kNoContent);
  run_until([&] { return first.seen.complete; });
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return queued.seen.complete || late.seen.complete; });
  EXPECT_TRUE(queued.seen.complete);
  EXPECT_FALSE(late.seen.complete);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return late.seen.complete; });
}

TEST_F(ConnectionPoolTest, TheQueueIsServedThoughConnectionsAreNotReused) {
  FakeOrigin origin;
  make({origin.name()}, bounded(2));
  Asked asked[6];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  for (Asked& one : asked) {
    static_cast<void>(one);
    origin.accept_another(loop);
    origin.read_head(loop);
    origin.write(kLastAnswer);
  }
  for (Asked& one : asked) run_until([&] { return one.seen.complete; });
  EXPECT_EQ(counters().connects.get(), 6U);
}

TEST_F(ConnectionPoolTest, TheQueueIsBounded) {
  FakeOrigin origin;
  UpstreamConfig config = bounded(1);
  config.connection_queue_max = 2;
  make({origin.name()}, config);
  Asked asked[4];
  get_from(origin, asked[0].call);
  EXPECT_TRUE(get(asked[1].call));
  EXPECT_TRUE(get(asked[2].call));
  EXPECT_EQ(get(asked[3].call).error(), UpstreamFailure::kNoConnection);
  EXPECT_EQ(failures(UpstreamFailure::kNoConnection), 1U);
  for (Asked& one : asked) one.call.cancel();
}

TEST_F(ConnectionPoolTest, TheQueueHasATimeout) {
  FakeOrigin origin;
  UpstreamConfig config = bounded(1);
  config.connect_timeout = milliseconds(40);
  make({origin.name()}, config);
  Asked one;
  Asked two;
  get_from(origin, one.call);
  ASSERT_TRUE(get(two.call));
  run_until_ended(two.seen);
  EXPECT_EQ(two.seen.failure, UpstreamFailure::kNoConnection);
  EXPECT_TRUE(endpoint().open()) << "the bound is ours";
  EXPECT_FALSE(one.seen.ended());
  one.call.cancel();
}

TEST_F(ConnectionPoolTest, AnIdleConnectionToAnotherEndpointMakesRoom) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()}, bounded(1));
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  keep_one_idle(a);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorUndrain, loop.now());
  loop.run_once();
  upstream->note_health(endpoint(0), policy::HealthEvent::kTooSlow, loop.now());
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  b.accept(loop);
  b.read_head(loop);
  b.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(upstream->connections(), 1U);
}

TEST_F(ConnectionPoolTest, AnIdleHttp2ConnectionToAnotherEndpointMakesRoom) {
  constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
  constexpr std::string_view kAnswer204("\0\0\1\1\5\0\0\0\1\x89", 10);
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = bounded(1);
  config.protocol = Protocol::kHttp2;
  make({a.name(), b.name()}, config);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  Asked first;
  ASSERT_TRUE(get(first.call));
  a.accept(loop);
  a.write(kSettings);
  a.write(kAnswer204);
  run_until([&] { return first.seen.complete; });
  EXPECT_EQ(counters(0).idle.get(), 1U);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorUndrain, loop.now());
  loop.run_once();
  upstream->note_health(endpoint(0), policy::HealthEvent::kTooSlow, loop.now());
  Asked second;
  ASSERT_TRUE(get(second.call));
  b.accept(loop);
  EXPECT_EQ(counters(0).idle.get(), 0U);
  b.write(kSettings);
  b.write(kAnswer204);
  run_until([&] { return second.seen.complete; });
  EXPECT_EQ(second.seen.status, 204U);
  EXPECT_EQ(upstream->connections(), 1U);
}

TEST_F(ConnectionPoolTest, IdleConnectionsOfAHungEndpointAreClosed) {
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = plain();
  config.idle_timeout = minutes(1);
  make({a.name(), b.name()}, config);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  keep_one_idle(a);
  upstream->note_health(endpoint(0), policy::HealthEvent::kSuspected, loop.now());
  loop.run_once();
  EXPECT_EQ(dispatcher->idle_connections(), 1U) << "any byte may end a suspicion";
  upstream->note_health(endpoint(0), policy::HealthEvent::kHung, loop.now());
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_TRUE(a.ended());
}

TEST_F(ConnectionPoolTest, AnIdleConnectionIsKeptWhileOthersConnect) {
  FakeOrigin a;
  FakeOrigin b(FakeOrigin::Refusing::kYes);
  make({a.name(), b.name()});
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  Asked asked;
  get_from(a, asked.call);
  // Somebody waits for a connection to the other endpoint. There is room for it.
  upstream->add_waiting(1);
  a.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
  upstream->add_waiting(-1);
}

TEST_F(ConnectionPoolTest, CriticalRequestsFindWhatOrdinaryOnesLeave) {
  FakeOrigin origin;
  make({origin.name()}, bounded(4), 8);  // of which at most a quarter are reserved
  Asked ordinary[4];
  for (Asked& one : ordinary) ASSERT_TRUE(get(one.call));
  for (int i = 0; i < 3; ++i) origin.accept_another(loop);
  run_until([&] { return upstream->waiting() == 1; });
  EXPECT_EQ(upstream->connections(), 3U);
  Asked critical;
  ASSERT_TRUE(get(critical.call, {}, io::Access::kCritical));
  EXPECT_EQ(upstream->connections(), 4U);
  origin.accept_another(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return critical.seen.complete || ordinary[3].seen.complete; });
  EXPECT_TRUE(critical.seen.complete) << "the one that waits longer is ordinary";
  EXPECT_EQ(counters().connects.get(), 4U);
  for (Asked& one : ordinary) one.call.cancel();
}

TEST_F(ConnectionPoolTest, AReservedConnectionIsNotLeftToOrdinaryRequests) {
  FakeOrigin origin;
  make({origin.name()}, bounded(4), 1);
  Asked ordinary[3];
  for (Asked& one : ordinary) {
    ASSERT_TRUE(get(one.call));
    origin.accept_another(loop);
  }
  run_until([&] { return upstream->waiting() == 0; });
  Asked critical;
  ASSERT_TRUE(get(critical.call, {}, io::Access::kCritical));
  origin.accept_another(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return critical.seen.complete && upstream->connections() == 3; });
  EXPECT_EQ(dispatcher->idle_connections(), 0U);
  for (Asked& one : ordinary) one.call.cancel();
}

TEST_F(ConnectionPoolTest, IdleConnectionsAreBounded) {
  FakeOrigin origin;
  UpstreamConfig config = plain();
  config.max_idle_connections = 1;
  make({origin.name()}, config);
  Asked asked[2];
  for (Asked& one : asked) {
    ASSERT_TRUE(get(one.call));
    origin.accept_another(loop);
    origin.read_head(loop);
  }
  origin.write(kNoContent);
  origin.back_to(1);
  origin.write(kNoContent);
  run_until([&] { return asked[0].seen.complete && asked[1].seen.complete; });
  run_until([&] { return upstream->connections() == 1; });
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

TEST_F(ConnectionPoolTest, AnIdleConnectionIsClosedAfterAWhile) {
  FakeOrigin origin;
  UpstreamConfig config = plain();
  config.idle_timeout = milliseconds(30);
  make({origin.name()}, config);
  keep_one_idle(origin);
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_TRUE(origin.ended());
}

TEST_F(ConnectionPoolTest, AnOldConnectionIsClosedAfterItsRequest) {
  FakeOrigin origin;
  UpstreamConfig config = plain();
  config.connection_age_max = milliseconds(20);
  make({origin.name()}, config);
  Asked asked;
  get_from(origin, asked.call);
  let_pass(milliseconds(30));
  EXPECT_FALSE(asked.seen.ended());
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 0U);
  run_until([&] { return upstream->connections() == 0; });
}

TEST_F(ConnectionPoolTest, AWarmConnectionIsReplacedWhenItsIdleTimeIsOver) {
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = plain();
  config.warm_connections = 1;
  config.idle_timeout = milliseconds(20);
  make({a.name(), b.name()}, config);
  a.accept(loop);
  b.accept(loop);
  run_until([&] { return counters(0).connects.get() >= 3 && counters(1).connects.get() >= 3; });
  EXPECT_TRUE(a.ended()) << "the service may have closed its side: it is not kept";
  EXPECT_TRUE(b.ended());
  a.accept(loop);
  EXPECT_LE(upstream->connections(), 4U) << "two, and perhaps two that are being closed";
}

TEST_F(ConnectionPoolTest, WarmConnectionsLeaveHalfOfThePlacesToRequests) {
  FakeOrigin origins[6];
  UpstreamConfig config = bounded(4);
  config.warm_connections = 1;
  config.idle_timeout = minutes(1);
  std::vector<io::SocketName> names;
  for (const FakeOrigin& origin : origins) names.push_back(origin.name());
  make(names, config);
  run_until([&] { return dispatcher->idle_connections() == 2; });
  let_pass(milliseconds(60));
  EXPECT_EQ(upstream->connections(), 2U);
}

TEST_F(ConnectionPoolTest, StrayBytesCloseAnIdleConnectionAndAreCounted) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_EQ(counters().strays.get(), 1U);
}

TEST_F(ConnectionPoolTest, StrayBytesAreNotTakenForTheAnswerOfAPost) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");  // before the loop has a turn
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.framing = RequestFraming::kNone}));
  EXPECT_EQ(counters().strays.get(), 1U);
  origin.accept(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 204U);
}

TEST_F(ConnectionPoolTest, LateBytesAreNeverTheAnswerOfAnotherGet) {
  FakeOrigin origin;
  make({origin.name()});
  for (std::uint64_t i = 1; i <= 5; ++i) {
    keep_one_idle(origin);
    origin.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");  // before the loop has a turn
    Asked asked;
    ASSERT_TRUE(get(asked.call));
    EXPECT_EQ(counters().strays.get(), i);
    origin.accept(loop);
    origin.read_head(loop);
    origin.write(kLastAnswer);
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(asked.seen.status, 204U);
    EXPECT_EQ(asked.call.attempts(), 1U);
  }
}

TEST_F(ConnectionPoolTest, BytesBeforeTheFirstRequestAreNoAnswerEither) {
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = plain();
  config.warm_connections = 1;
  make({a.name(), b.name()}, config);
  a.accept(loop);
  b.accept(loop);
  run_until([&] { return dispatcher->idle_connections() == 2; });
  a.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  b.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& used = accept_at_one(a, b);
  EXPECT_EQ(used.read_head(loop), kGetOnWire);
  used.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 204U);
}

TEST_F(ConnectionPoolTest, AnIdleConnectionThatEndsIsNoStray) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  origin.close();
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_EQ(counters().strays.get(), 0U);
}

TEST_F(ConnectionPoolTest, AConnectThatTakesTooLongFails) {
  // A listener whose backlog is full accepts no handshake.
  FakeOrigin full(FakeOrigin::Refusing::kYes);
  full.open_with_backlog(0);
  std::vector<io::Fd> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(std::move(io::connect_to(full.name(), {}).value()));
  }
  UpstreamConfig config = plain();
  config.connect_timeout = milliseconds(40);
  config.hold_max = Duration(0);
  make({full.name()}, config);
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kConnectTimeout);
  run_until([&] { return !endpoint().open(); });
}

TEST_F(ConnectionPoolTest, AnEndpointIsNotToBlameWhenNoDescriptorIsLeft) {
#ifdef __has_feature
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer needs a descriptor to check an object's type";
#endif
#endif
  FakeOrigin origin;
  UpstreamConfig config = plain();
  config.connect_timeout = milliseconds(50);
  make({origin.name()}, config);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};  // for new descriptors
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Asked asked;
  const auto started = get(asked.call);
  loop.run_once();
  const bool waits_quietly = dispatcher->pool().stopped();  // nothing is queued
  run_until([&] { return !started.has_value() || asked.seen.ended(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(started ? asked.seen.failure : started.error(), UpstreamFailure::kNoConnection);
  EXPECT_TRUE(waits_quietly);
  EXPECT_TRUE(endpoint().open());
}

TEST_F(ConnectionPoolTest, AWaiterThatFailsMayStartAnotherCall) {
  FakeOrigin dead(FakeOrigin::Refusing::kYes);
  UpstreamConfig config = plain();
  config.hold_max = Duration(0);
  make({dead.name()}, config);
  Asked asked[3];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  asked[0].seen.within(CallEvent::kFailed, [&] {
    asked[1].call.cancel();
    EXPECT_FALSE(get(asked[0].call).has_value()) << "no endpoint is left";
  });
  run_until([&] { return asked[0].seen.ended() && asked[2].seen.ended(); });
  EXPECT_FALSE(asked[1].seen.ended());
}

TEST_F(ConnectionPoolTest, StopEndsTheQueueAndLetsRequestsEnd) {
  FakeOrigin origin;
  make({origin.name()}, bounded(1));
  Asked served;
  Asked queued;
  get_from(origin, served.call);
  ASSERT_TRUE(get(queued.call));
  queued.seen.within(CallEvent::kFailed,
                     [&] { EXPECT_EQ(get(queued.call).error(), UpstreamFailure::kNoConnection); });
  dispatcher->stop();
  EXPECT_EQ(queued.seen.failure, UpstreamFailure::kNoConnection);
  EXPECT_FALSE(dispatcher->stopped());
  origin.write(kNoContent);
  run_until([&] { return served.seen.complete && dispatcher->stopped(); });
}

TEST_F(ConnectionPoolTest, StopWhileConnecting) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked[2];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  asked[0].seen.within(CallEvent::kFailed, [&] {
    EXPECT_EQ(get(asked[0].call).error(), UpstreamFailure::kNoConnection);
  });
  dispatcher->stop();
  for (Asked& one : asked) EXPECT_EQ(one.seen.failure, UpstreamFailure::kNoConnection);
  run_until([&] { return dispatcher->stopped(); });
}

class TwoLoopsTest : public ConnectionPoolTest {
 protected:
  void make_two(const std::vector<io::SocketName>& origins, const UpstreamConfig& config) {
    make(origins, config);
    other = make_dispatcher(other_loop, 1);
  }
  void TearDown() override {
    other->stop();
    for (int i = 0; i < 100 && !other->stopped(); ++i) other_loop.run_once();
    other_loop.run_once();
    other.reset();
    ConnectionPoolTest::TearDown();
  }
  Result<void, UpstreamFailure> get_on_other(Call& call) {
    put_head(*other, call, kGet, head_parts(kGet, http::Method::kGet, RequestFraming::kNone));
    return call.start({});
  }
  template <class Done>
  void run_both_until(Done done) {
    run_until([&] {
      other_loop.run_once();
      return done();
    });
  }

  io::Loop other_loop;
  std::unique_ptr<Dispatcher> other;
};

TEST_F(TwoLoopsTest, AnIdleConnectionOfAnotherLoopMakesRoom) {
  FakeOrigin origin;
  make_two({origin.name()}, bounded(1));
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(get_on_other(asked.call));  // an idle connection fills the bound
  EXPECT_EQ(upstream->waiting(), 1U);
  run_both_until([&] { return origin.has_caller(); });
  origin.accept(other_loop);
  origin.read_head(other_loop);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  run_both_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "hi");
  EXPECT_EQ(upstream->connections(), 1U);
}

TEST_F(TwoLoopsTest, OneWhoWaitsMayBeCancelled) {
  FakeOrigin origin;
  make_two({origin.name()}, bounded(1));
  keep_one_idle(origin);
  Asked asked;
  ASSERT_TRUE(get_on_other(asked.call));
  asked.call.cancel();
  EXPECT_EQ(upstream->waiting(), 0U);
  loop.run_once();
  EXPECT_EQ(dispatcher->idle_connections(), 1U) << "nobody waits any more";
}

TEST_F(TwoLoopsTest, ABusyConnectionServesTheOtherLoopsQueueWhenItIsFree) {
  FakeOrigin origin;
  make_two({origin.name()}, bounded(1));
  Asked one;
  Asked two;
  get_from(origin, one.call);
  ASSERT_TRUE(get_on_other(two.call));
  origin.write(kNoContent);
  run_both_until([&] { return one.seen.complete && origin.has_caller(); });
  origin.accept(other_loop);
  origin.read_head(other_loop);
  origin.write(kNoContent);
  run_both_until([&] { return two.seen.complete; });
}

}  // namespace
}  // namespace weir::upstream
