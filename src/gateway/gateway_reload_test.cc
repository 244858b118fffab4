// Upstreams that reloads add, replace and remove while requests are in progress; real sockets.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::answer_of;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::NamedOrigin;
using testkit::Origin;
using testkit::RunningGateway;

/// `config` with one upstream of this name alone, at this address, and the route to it.
config::Config moved_to(config::Config config, const std::string& name,
                        const std::string& address) {
  config.upstreams.resize(1);
  config.upstreams[0].name = name;
  config.upstreams[0].endpoints = {*upstream::parse_source(address)};
  config.routes[0].upstream = name;
  return config;
}

bool all_pools_are_empty(const RunningGateway& gateway) {
  const nlohmann::json pools = nlohmann::json::parse(gateway.page("/pools"))["pools"];
  for (const char* name : {"proxied_requests", "request_heads", "request_bodies", "request_buffers",
                           "upstream_sessions", "response_regions"}) {
    if (pools[name]["used"] != 0) return false;
  }
  return true;
}

TEST(GatewayReload, ARequestFinishesAtTheUpstreamThatARouteLeft) {
  HeldOrigin old_origin;
  NamedOrigin new_origin("new");
  const config::Config before = gateway_config({old_origin.address()});
  RunningGateway gateway(before);
  Client client(gateway.port());
  ASSERT_TRUE(old_origin.hold(client));
  const ReloadReport report = gateway->reload(moved_to(before, "next", new_origin.address()));
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_THAT(report.upstreams, ElementsAre("upstream next: added, 1 endpoint",
                                            "upstream app: removed; 1 request finishes"));
  EXPECT_EQ(answer_of(gateway), "new");
  EXPECT_EQ(gateway.stats()["leaving_upstreams"][0]["upstream"], "app");
  EXPECT_FALSE(gateway.stats()["upstreams"].contains("app"));
  EXPECT_THAT(gateway.page("/metrics"), Not(HasSubstr("upstream=\"app\"")));
  EXPECT_THAT(gateway.page("/endpoints"), Not(HasSubstr(old_origin.address())));
  EXPECT_THAT(gateway.page("/config"), Not(HasSubstr("\"app\"")));
  old_origin.let_go();
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "done");
  EXPECT_TRUE(eventually([&] { return gateway.stats()["leaving_upstreams"].empty(); }));
  EXPECT_TRUE(gateway.settled());
  EXPECT_TRUE(eventually([&] { return all_pools_are_empty(gateway); }));
  EXPECT_EQ(gateway->status().answered, 2U) << "also those of the one that is gone";
}

TEST(GatewayReload, ARequestThatWaitsForAPermitIsStillSentToTheUpstreamThatWasRemoved) {
  HeldOrigin old_origin;
  NamedOrigin new_origin("new");
  config::Config before = testkit::with_fixed_limit(gateway_config({old_origin.address()}), 1);
  before.admission.normal_wait_max = std::chrono::seconds(30);
  before.server.loops = 1;
  RunningGateway gateway(before);
  Client first(gateway.port());
  ASSERT_TRUE(old_origin.hold(first));
  Client second(gateway.port());
  ASSERT_TRUE(second.send(testkit::kGet));
  ASSERT_TRUE(eventually([&] { return gateway.waiting() == 1; }));
  const ReloadReport report = gateway->reload(moved_to(before, "next", new_origin.address()));
  EXPECT_THAT(report.upstreams, ElementsAre("upstream next: added, 1 endpoint",
                                            "upstream app: removed; 2 requests finish"));
  EXPECT_EQ(answer_of(gateway), "new");
  old_origin.let_go();
  EXPECT_EQ(first.read().status, 200);
  ASSERT_TRUE(old_origin.wait_for(1)) << "on a new connection, if need be";
  old_origin.let_go();
  EXPECT_EQ(second.read().body, "done");
  EXPECT_TRUE(eventually([&] { return gateway.stats()["leaving_upstreams"].empty(); }));
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayReload, AReplacedUpstreamFinishesItsRequestsUnderTheSameLimit) {
  HeldOrigin origin;
  const config::Config before = testkit::with_fixed_limit(gateway_config({origin.address()}), 2);
  RunningGateway gateway(before);
  Client first(gateway.port());
  ASSERT_TRUE(origin.hold(first));
  config::Config next = before;
  next.upstreams[0].max_connections = 20;
  const ReloadReport report = gateway->reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_THAT(report.upstreams,
              ElementsAre("upstream app: replaced, 1 endpoint; 1 request finishes at the one "
                          "before"));
  Client second(gateway.port());
  ASSERT_TRUE(second.send(testkit::kGet));
  ASSERT_TRUE(origin.wait_for(2));
  EXPECT_EQ(Client(gateway.port()).get("/").status, 503) << "the old request is in the limit too";
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_EQ(second.read().status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_TRUE(eventually([&] { return gateway.stats()["leaving_upstreams"].empty(); }));
}

TEST(GatewayReload, ProtocolsChangeByAReload) {
  Origin origin(testkit::echo);  // speaks HTTP/1.1 and HTTP/2 in cleartext
  config::Config config = gateway_config({origin.address()});
  RunningGateway gateway(config);
  for (const upstream::Protocol protocol :
       {upstream::Protocol::kHttp2, upstream::Protocol::kHttp1, upstream::Protocol::kHttp2}) {
    config.upstreams[0].protocol = protocol;
    const std::uint64_t before = origin.server().stats().h2_connections;
    ASSERT_EQ(gateway->reload(config).refused, "");
    EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
    EXPECT_EQ(origin.server().stats().h2_connections > before,
              protocol == upstream::Protocol::kHttp2);
  }
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayReload, AnUpstreamThatIsTheGatewayItselfIsRefusedAndNothingChanges) {
  NamedOrigin origin("a");
  const config::Config before = gateway_config({origin.address()});
  RunningGateway gateway(before);
  const ReloadReport report =
      gateway->reload(moved_to(before, "self", gateway->listening().front()));
  EXPECT_THAT(report.refused, HasSubstr("is this gateway itself"));
  EXPECT_EQ(answer_of(gateway), "a");
  EXPECT_EQ(gateway.stats()["upstreams"].size(), 1U);
  EXPECT_TRUE(gateway.stats()["leaving_upstreams"].empty());
}

TEST(GatewayReload, NoRequestFailsWhileUpstreamsComeAndGo) {
  NamedOrigin origin("x");
  config::Config config = gateway_config({origin.address()});
  config.upstreams[0].max_connections = 64;
  RunningGateway gateway(config);
  std::atomic<bool> done{false};
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      Client client(gateway.port());
      while (!done.load()) {
        ASSERT_EQ(client.get("/").status, 200);
        ++answered;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    config = moved_to(config, "u" + std::to_string(i), origin.address());
    config.upstreams[0].protocol =
        i % 2 == 0 ? upstream::Protocol::kHttp2 : upstream::Protocol::kHttp1;
    const int before = answered.load();
    ASSERT_EQ(gateway->reload(config).refused, "") << i;
    EXPECT_TRUE(eventually([&] { return answered.load() >= before + 8; }));
  }
  done = true;
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(gateway.settled());
  EXPECT_TRUE(eventually([&] { return gateway.stats()["leaving_upstreams"].empty(); }));
  EXPECT_EQ(gateway.stats()["requests"]["answered"], answered.load());
  EXPECT_EQ(gateway.stats()["requests"]["active"], 0);
  config = moved_to(config, "last", testkit::unused_address());
  ASSERT_TRUE(gateway->reload(config).ok());  // no idle connection of the one before is kept
  EXPECT_TRUE(eventually([&] { return all_pools_are_empty(gateway); }));
}

}  // namespace
}  // namespace weir::gateway
