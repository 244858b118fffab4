#include "upstream/upstream.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using policy::HealthEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Observer final : UpstreamObserver {
  void on_endpoint_change(std::string_view, const Endpoint& endpoint,
                          const policy::HealthChange& change) override {
    changes.push_back(endpoint.label() + " " + std::string(name_of(change.to)));
  }
  void on_set_change(std::string_view, std::size_t added, std::size_t removed,
                     std::size_t endpoints) override {
    sets.push_back("+" + std::to_string(added) + " -" + std::to_string(removed) + " =" +
                   std::to_string(endpoints));
  }
  void on_tls_failure(std::string_view, const Endpoint&, std::string_view) override {}

  std::vector<std::string> changes;
  std::vector<std::string> sets;
};

DiscoveredEndpoint at_port(int port, std::string zone = {}) {
  DiscoveredEndpoint one;
  one.address = *io::parse_socket_name("127.0.0.1:" + std::to_string(port));
  one.zone = std::move(zone);
  return one;
}

struct UpstreamTest : ::testing::Test {
  static std::string labels(const Upstream& upstream) {
    std::string all;
    const std::shared_ptr<const EndpointSet> set = upstream.endpoints();
    for (const EndpointSet::Member& member : set->members) {
      all += member.endpoint->label().substr(10) + " ";
    }
    return all;
  }
  UpstreamConfig config;
  Observer observer;
  TimePoint now = TimePoint{} + seconds(100);
};

TEST_F(UpstreamTest, TheFirstEndpointsAreReadyAndLaterOnesReturnSlowly) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1)}, now);
  EXPECT_EQ(upstream.endpoints()->members[0].endpoint->return_ratio(now), 1);
  upstream.set_endpoints({at_port(1), at_port(2)}, now);
  EXPECT_EQ(upstream.endpoints()->members[0].endpoint->return_ratio(now), 1);
  EXPECT_LT(upstream.endpoints()->members[1].endpoint->return_ratio(now), 0.2);
  EXPECT_EQ(observer.sets, std::vector<std::string>{"+1 -0 =2"});
}

TEST_F(UpstreamTest, TheFirstEndpointsOfAnEmptySetAreReady) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer}, {}, now);
  upstream.set_endpoints({at_port(1)}, now);
  EXPECT_EQ(upstream.endpoints()->members[0].endpoint->return_ratio(now), 1);
}

TEST_F(UpstreamTest, TheSameSetInAnotherOrderIsNoChange) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1), at_port(2)}, now);
  upstream.set_endpoints({at_port(2), at_port(1)}, now);
  EXPECT_TRUE(observer.sets.empty());
  upstream.set_endpoints({at_port(3)}, now);
  EXPECT_EQ(observer.sets, std::vector<std::string>{"+1 -2 =1"});
}

TEST_F(UpstreamTest, EndpointsOfOurZoneComeFirst) {
  config.zone = "z";
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1), at_port(2, "z"), at_port(3, "y"), at_port(4, "z")}, now);
  EXPECT_EQ(labels(upstream), "2 4 1 3 ");
  EXPECT_EQ(upstream.endpoints()->local, 2U);
}

TEST_F(UpstreamTest, TellsTheObserverOfEachChangeOnce) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1)}, now);
  Endpoint& endpoint = *upstream.endpoints()->members[0].endpoint;
  EXPECT_TRUE(upstream.any_open());
  EXPECT_FALSE(upstream.all_failing());
  upstream.note_health(endpoint, HealthEvent::kConnectFailed, now);
  upstream.note_health(endpoint, HealthEvent::kConnectFailed, now);
  EXPECT_FALSE(upstream.any_open());
  EXPECT_TRUE(upstream.all_failing());
  upstream.note_health(endpoint, HealthEvent::kTick, now + seconds(1));
  EXPECT_TRUE(upstream.any_open());
  EXPECT_TRUE(upstream.all_failing()) << "it is on trial";
  upstream.note_good(endpoint, HealthEvent::kAnswered, now + seconds(1));
  EXPECT_FALSE(upstream.all_failing());
  EXPECT_EQ(observer.changes,
            (std::vector<std::string>{"127.0.0.1:1 ejected", "127.0.0.1:1 returning"}));
}

TEST_F(UpstreamTest, ADrainThatChangesIsToldToTheObserver) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1)}, now);
  DiscoveredEndpoint draining = at_port(1);
  draining.draining = true;
  upstream.set_endpoints({draining}, now);
  EXPECT_EQ(observer.changes, std::vector<std::string>{"127.0.0.1:1 draining"});
}

TEST_F(UpstreamTest, ConnectionsAreBoundedAndSomeAreReserved) {
  config.max_connections = 8;
  Upstream upstream({.config = config, .loops = 1, .reserved = 5, .rng = Rng(1)}, {}, now);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(upstream.try_add_connection(io::Access::kOrdinary));
  EXPECT_FALSE(upstream.try_add_connection(io::Access::kOrdinary)) << "a quarter is reserved";
  EXPECT_FALSE(upstream.reserve_in_use());
  EXPECT_TRUE(upstream.try_add_connection(io::Access::kCritical));
  EXPECT_TRUE(upstream.reserve_in_use());
  EXPECT_TRUE(upstream.try_add_connection(io::Access::kCritical));
  EXPECT_FALSE(upstream.try_add_connection(io::Access::kCritical));
  for (int i = 0; i < 8; ++i) upstream.drop_connection();
  EXPECT_EQ(upstream.connections(), 0U);
}

TEST_F(UpstreamTest, PublishedValuesAreReadAsTheyWereWritten) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1)}, {}, now);
  upstream.publish({.cohort = {.endpoints = 1'000'000,
                               .open = 999'999,
                               .returning = 2'000'000,
                               .open_weight = 12.5,
                               .weight_max = 3},
                    .latency = {.median = milliseconds(2), .p99 = milliseconds(9)}});
  const Upstream::Published read = upstream.published();
  EXPECT_EQ(read.cohort.endpoints, 1'000'000U);
  EXPECT_EQ(read.cohort.open, 999'999U);
  EXPECT_EQ(read.cohort.returning, 2'000'000U);
  EXPECT_EQ(read.cohort.open_weight, 12.5);
  EXPECT_EQ(read.cohort.weight_max, 3);
  EXPECT_EQ(read.latency.median, milliseconds(2));
  EXPECT_EQ(read.latency.p99, milliseconds(9));
}

TEST_F(UpstreamTest, AnEndpointThatLeftIsTheSameWhenItComesBackWhileItIsUsed) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1)}, {at_port(1)}, now);
  const std::shared_ptr<Endpoint> used = upstream.endpoints()->members[0].endpoint;
  upstream.note_health(*used, HealthEvent::kConnectFailed, now);
  upstream.set_endpoints({at_port(2)}, now);
  upstream.set_endpoints({at_port(3)}, now);
  upstream.set_endpoints({at_port(1)}, now);
  EXPECT_EQ(upstream.endpoints()->members[0].endpoint, used);
  EXPECT_FALSE(used->open()) << "and so is its health";
}

TEST_F(UpstreamTest, ABudgetThatChangesHoldsForEveryEndpointAndForThoseThatJoin) {
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1)}, now);
  const policy::RedundancyBudgetRules rules = policy::redundancy_budget_rules(37, 5);
  upstream.set_budget_rules(rules);
  upstream.set_endpoints({at_port(1), at_port(2)}, now);
  EXPECT_EQ(upstream.budget().rules(), rules);
  const std::shared_ptr<const EndpointSet> set = upstream.endpoints();
  for (const EndpointSet::Member& member : set->members) {
    EXPECT_EQ(member.endpoint->budget().rules(), rules) << member.endpoint->label();
  }
}

TEST_F(UpstreamTest, AnEndpointDrainsBesideItsSourceUntilItIsTakenBack) {
  DiscoveredEndpoint by_source = at_port(3);
  by_source.draining = true;
  Upstream upstream({.config = config, .loops = 1, .rng = Rng(1), .observer = &observer},
                    {at_port(1), at_port(2), by_source}, now);
  const auto state = [&](std::size_t i) {
    return upstream.endpoints()->members[i].endpoint->health().state();
  };
  upstream.set_drained({at_port(1).address, at_port(3).address, at_port(4).address}, now);
  EXPECT_EQ(state(0), policy::EndpointState::kDraining);
  EXPECT_EQ(state(1), policy::EndpointState::kAvailable);
  upstream.set_endpoints({at_port(1), at_port(2), by_source, at_port(4)}, now);
  EXPECT_EQ(state(0), policy::EndpointState::kDraining) << "what its source says is not all";
  EXPECT_EQ(state(3), policy::EndpointState::kDraining) << "it drains when it joins";
  upstream.set_drained({}, now);
  EXPECT_NE(state(0), policy::EndpointState::kDraining);
  EXPECT_NE(state(3), policy::EndpointState::kDraining);
  EXPECT_EQ(state(2), policy::EndpointState::kDraining) << "its source still says so";
}

}  // namespace
}  // namespace weir::upstream
