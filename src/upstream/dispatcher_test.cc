#include "upstream/dispatcher.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pool_endpoint.h"
#include "upstream/dispatcher_testing.h"

// Which endpoint a call uses, and sets that change while calls are under way.

namespace weir::upstream {
namespace {

using policy::HealthEvent;
using std::chrono::milliseconds;

class DispatcherChoiceTest : public DispatcherTest {
 protected:
  /// How often each endpoint is chosen of a number of times.
  std::vector<int> chosen(int times, const Dispatcher::Ask& ask = {}) {
    std::vector<int> counts(upstream->endpoints()->members.size());
    for (int i = 0; i < times; ++i) {
      const Dispatcher::Chosen one = dispatcher->choose(ask);
      if (one.endpoint == nullptr) continue;
      for (std::size_t k = 0; k < counts.size(); ++k) {
        if (one.endpoint->shared.get() == &endpoint(k)) ++counts[k];
      }
    }
    return counts;
  }
  void note(std::size_t i, HealthEvent event) {
    upstream->note_health(endpoint(i), event, loop.now());
  }
  static std::vector<io::SocketName> names(std::size_t count) {
    std::vector<io::SocketName> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(*io::parse_socket_name("127.0.0.1:" + std::to_string(i + 1)));
    }
    return all;
  }
};

TEST_F(DispatcherChoiceTest, AllEndpointsThatAreWellAreUsed) {
  make(names(3));
  for (const int count : chosen(300)) EXPECT_GT(count, 50);
}

TEST_F(DispatcherChoiceTest, EjectedDrainingAndSilentEndpointsAreNotUsed) {
  make(names(8));
  note(0, HealthEvent::kConnectFailed);
  note(1, HealthEvent::kOperatorDrain);
  note(2, HealthEvent::kSuspected);
  note(3, HealthEvent::kHung);
  note(4, HealthEvent::kTooSlow);
  const std::vector<int> counts = chosen(300);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(counts[i], 0) << i;
  for (std::size_t i = 5; i < 8; ++i) EXPECT_GT(counts[i], 0) << i;
}

TEST_F(DispatcherChoiceTest, ASilentOneIsTheLastResort) {
  make(names(2));
  note(0, HealthEvent::kHung);
  note(1, HealthEvent::kConnectFailed);
  EXPECT_EQ(chosen(10), (std::vector<int>{10, 0}));
  EXPECT_EQ(dispatcher->choose({}).reason, policy::ChoiceReason::kLastResort);
}

TEST_F(DispatcherChoiceTest, WhatWasTriedIsNotUsedWhileAnotherIsOpen) {
  make(names(2));
  const Endpoint* const tried[] = {&endpoint(0)};
  EXPECT_EQ(chosen(50, {.tried = tried}), (std::vector<int>{0, 50}));
  EXPECT_TRUE(dispatcher->other_open(tried));
  note(1, HealthEvent::kOperatorDrain);
  EXPECT_EQ(chosen(50, {.tried = tried}), (std::vector<int>{50, 0}));
  EXPECT_FALSE(dispatcher->other_open(tried));
}

TEST_F(DispatcherChoiceTest, AnEndpointOnTrialGetsOneAttempt) {
  make(names(1));
  const TimePoint before = loop.now();
  upstream->note_health(endpoint(0), HealthEvent::kConnectFailed, before);
  EXPECT_EQ(dispatcher->choose({}).reason, policy::ChoiceReason::kAllOut);
  upstream->note_health(endpoint(0), HealthEvent::kTick, before + std::chrono::seconds(1));
  ASSERT_EQ(endpoint(0).openness(), policy::Openness::kTrial);
  EXPECT_NE(dispatcher->choose({}).endpoint, nullptr);
  EXPECT_EQ(dispatcher->choose({}).endpoint, nullptr) << "it is being tried";
}

TEST_F(DispatcherChoiceTest, NoEndpointHoldsMoreThanItsShareWhileOthersAreOpen) {
  make(names(3));
  upstream->set_limit(6);  // ceil(1.5 × 6 ÷ 3) = 3 for each
  upstream->publish(
      {.cohort = {.endpoints = 3, .open = 3, .returning = 0, .open_weight = 3, .weight_max = 1},
       .latency = {}});
  for (int i = 0; i < 3; ++i) endpoint(0).add_in_flight();
  for (int i = 0; i < 2; ++i) endpoint(1).add_in_flight();
  for (int i = 0; i < 2; ++i) endpoint(2).add_in_flight();
  // Its score is the best of all by far.
  endpoint(0).set_score({.ns = 1, .updated_at = loop.now()});
  EXPECT_EQ(chosen(100)[0], 0);
  endpoint(1).add_in_flight();
  endpoint(2).add_in_flight();
  const std::vector<int> full = chosen(100);
  EXPECT_EQ(full[0] + full[1] + full[2], 100) << "admission is the bound, not the share";
  for (std::size_t i = 0; i < 3; ++i) {
    while (endpoint(i).in_flight() > 0) endpoint(i).sub_in_flight();
  }
}

TEST_F(DispatcherChoiceTest, AHashChoosesTheSameEndpointAgain) {
  UpstreamConfig config = plain();
  config.balance = policy::Balance::kHash;
  make(names(5), config);
  for (std::uint64_t hash = 1; hash < 200; hash += 37) {
    const PoolEndpoint* const first = dispatcher->choose({.tried = {}, .hash = hash}).endpoint;
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(dispatcher->choose({.tried = {}, .hash = hash}).endpoint, first);
    }
  }
}

TEST_F(DispatcherChoiceTest, AnEmptySetHasNothingToChoose) {
  make({});
  EXPECT_EQ(dispatcher->choose({}).reason, policy::ChoiceReason::kEmptySet);
  EXPECT_FALSE(dispatcher->other_open({}));
  EXPECT_FALSE(upstream->any_open());
}

class EndpointSetTest : public DispatcherTest {
 protected:
  void set(const std::vector<io::SocketName>& names) {
    upstream->set_endpoints(found(names), loop.now());
  }
};

TEST_F(EndpointSetTest, ACallUnderWayEndsAtAnEndpointThatLeft) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name()});
  Asked asked;
  get_from(a, asked.call);
  set({b.name()});
  let_pass(milliseconds(60));
  Asked next;
  get_from(b, next.call);
  a.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "hi");
  run_until([&] { return a.ended(); });
  EXPECT_EQ(dispatcher->idle_connections(), 0U) << "nobody will use it again";
  next.call.cancel();
}

TEST_F(EndpointSetTest, IdleConnectionsOfAnEndpointThatLeftAreClosed) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name()});
  keep_one_idle(a);
  set({b.name()});
  run_until([&] { return upstream->connections() == 0; });
  EXPECT_TRUE(a.ended());
}

TEST_F(EndpointSetTest, AnEndpointThatLeavesWhileItIsConnectedToStillServesWhoWaits) {
  FakeOrigin a;
  make({a.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  set({});
  loop.run_once();
  a.accept(loop);
  EXPECT_EQ(a.read_head(loop), kGetOnWire);
  a.write(kNoContent);
  run_until([&] { return asked.seen.complete && upstream->connections() == 0; });
}

TEST_F(EndpointSetTest, AnEndpointThatLeavesWhileItIsConnectedToIsForgottenIfNobodyWaits) {
  FakeOrigin a;
  make({a.name()});
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  asked.call.cancel();
  set({});
  run_until([&] { return upstream->connections() == 0; });
}

TEST_F(EndpointSetTest, AnEndpointThatStaysIsTheSameObject) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  const Endpoint* const first = &endpoint(0);
  set({b.name(), a.name()});
  EXPECT_EQ(&endpoint(1), first) << "another order is no change";
  set({a.name()});
  EXPECT_EQ(&endpoint(0), first);
}

TEST_F(EndpointSetTest, AnEndpointThatComesBackWhileItIsUsedIsTheSameObject) {
  FakeOrigin a;
  make({a.name()});
  Asked asked;
  get_from(a, asked.call);
  const Endpoint* const before = &endpoint(0);
  set({});
  let_pass(milliseconds(60));
  set({a.name()});
  ASSERT_EQ(&endpoint(0), before);
  EXPECT_EQ(endpoint(0).in_flight(), 1U);
  loop.run_once();
  a.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(dispatcher->idle_connections(), 1U) << "it is in the set again";
}

TEST_F(EndpointSetTest, ARetryDoesNotUseAnEndpointThatLeft) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name()});
  Asked asked;
  get_from(a, asked.call);
  set({b.name()});
  loop.run_once();
  a.stop_listening();
  a.reset();
  b.accept(loop);
  b.read_head(loop);
  b.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(EndpointSetTest, ADrainedEndpointGetsNoNewCalls) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  std::vector<DiscoveredEndpoint> all = found({a.name(), b.name()});
  all[0].draining = true;
  upstream->set_endpoints(all, loop.now());
  for (int i = 0; i < 5; ++i) {
    Asked asked;
    get_from(b, asked.call);
    b.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    run_until([&] { return asked.seen.complete; });
  }
  EXPECT_EQ(counters(0).attempts.get(), 0U);
}

// Its weight is small during the trial: a choice among all would hardly ever give it one.
TEST_F(DispatcherChoiceTest, AnEndpointOnTrialGetsTheNextRead) {
  FakeOrigin a;
  FakeOrigin b;
  FakeOrigin c;
  make({a.name(), b.name(), c.name()});
  Endpoint& hung = *upstream->endpoints()->members[0].endpoint;
  hung.note(policy::HealthEvent::kHung, loop.now() - std::chrono::minutes(5));
  hung.note(policy::HealthEvent::kTick, loop.now());
  ASSERT_EQ(hung.openness(), policy::Openness::kTrial);
  run_until([&] { return upstream->published().cohort.returning > 0; });
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  EXPECT_EQ(asked.call.endpoint(), &hung);
  Asked next;  // one is under way: the others are used
  ASSERT_TRUE(get(next.call));
  EXPECT_NE(next.call.endpoint(), &hung);
  asked.call.cancel();
  next.call.cancel();
}

}  // namespace
}  // namespace weir::upstream
