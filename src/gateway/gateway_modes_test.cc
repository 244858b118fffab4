// Routes with modes of their own, over sockets: one in shadow beside one that enforces.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using testing::HasSubstr;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::RunningGateway;
using testkit::with_fixed_limit;

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nhost: t\r\nx-api-key: alice\r\n\r\n";
}

/// /lax has modes of its own, everything else those of [admission].
struct GatewayModes : testing::Test {
  GatewayModes() {
    RouteConfig lax = config.routes[0];
    lax.path_prefix = "/lax";
    lax.modes.limit = RuleMode::kShadow;
    config.routes.insert(config.routes.begin(), lax);
  }
  /// Sends a request that the origin holds.
  bool hold(RunningGateway& gateway, std::string_view path) {
    clients.push_back(std::make_unique<Client>(gateway.port()));
    return clients.back()->send(get(path)) && origin.wait_for(clients.size());
  }
  /// Ends all requests that are held; each is answered.
  void let_go() {
    origin.let_go();
    for (const auto& client : clients) EXPECT_EQ(client->read().status, 200);
    clients.clear();
  }
  static nlohmann::json scope(const RunningGateway& gateway) {
    return gateway.stats()["upstreams"]["app"];
  }

  HeldOrigin origin;
  config::Config config = with_fixed_limit(gateway_config({origin.address()}), 2);
  std::vector<std::unique_ptr<Client>> clients;
};

TEST_F(GatewayModes, UnderOverloadOneRouteIsServedAndCountedWhileTheOtherIsRefused) {
  RunningGateway gateway(config);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(hold(gateway, "/lax"));
  for (int i = 0; i < 3; ++i) {
    const Answer refused = Client(gateway.port()).ask(get("/strict"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  }
  EXPECT_EQ(origin.held(), 5U);
  const nlohmann::json under = scope(gateway);
  EXPECT_EQ(under["in_flight"], 5);
  EXPECT_EQ(under["shadow_refused"]["overload"], 3);  // two of five had room
  EXPECT_EQ(under["refused"]["overload"], 3);
  EXPECT_THAT(
      gateway.page("/metrics"),
      HasSubstr("weir_admission_shadow_rejected_total{scope=\"app\",reason=\"overload\"} 3\n"));
  let_go();
  ASSERT_TRUE(gateway.settled());
  EXPECT_EQ(scope(gateway)["in_flight"], 0);
  ASSERT_TRUE(hold(gateway, "/strict"));  // the whole limit is there again
  ASSERT_TRUE(hold(gateway, "/strict"));
  EXPECT_EQ(Client(gateway.port()).ask(get("/strict")).status, 503);
  let_go();
}

TEST_F(GatewayModes, AReloadChangesTheModeOfARouteWhileItsRequestsAreInFlight) {
  RunningGateway gateway(config);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(hold(gateway, "/lax"));
  config::Config next = config;
  next.routes[0].modes.limit = RuleMode::kEnforce;
  next.admission.modes.limit = RuleMode::kShadow;
  ASSERT_TRUE(gateway->reload(next).ok());
  EXPECT_EQ(Client(gateway.port()).ask(get("/lax")).status, 503);
  ASSERT_TRUE(hold(gateway, "/strict"));  // the modes have changed sides
  next.routes[0].modes.limit.reset();     // inherits
  ASSERT_TRUE(gateway->reload(next).ok());
  ASSERT_TRUE(hold(gateway, "/lax"));
  EXPECT_EQ(scope(gateway)["in_flight"], 5);
  let_go();
  ASSERT_TRUE(gateway.settled());
  EXPECT_EQ(scope(gateway)["in_flight"], 0);
  EXPECT_EQ(gateway.stats()["admission"]["in_flight"], 0);
  EXPECT_EQ(gateway.stats()["admission"]["bytes"], 0);
  EXPECT_TRUE(nlohmann::json::parse(gateway.page("/actors"))["actors"].empty());
}

// One actor on two routes: its requests in shadow count in its budget.
TEST_F(GatewayModes, AnActorsRequestsInShadowUseItsBudget) {
  config.admission.limit.initial_limit = 100;
  config.admission.inflight_max = 2;
  config.routes[0].modes.actor = RuleMode::kShadow;
  RunningGateway gateway(config);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(hold(gateway, "/lax"));
  const Answer refused = Client(gateway.port()).ask(get("/strict"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("x-weir-reason: actor_inflight\r\n"));
  EXPECT_EQ(scope(gateway)["shadow_refused"]["actor_inflight"], 1);
  let_go();
}

// A body that is received first is admitted in two parts, by the modes of its route.
TEST_F(GatewayModes, ABodyThatIsReceivedFirstKeepsTheModesOfItsRoute) {
  RunningGateway gateway(config);
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(gateway.port()));
    ASSERT_TRUE(
        clients.back()->send("POST /lax HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\nhi"));
    ASSERT_TRUE(origin.wait_for(clients.size()));
  }
  const Answer refused =
      Client(gateway.port()).ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\nhi");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(scope(gateway)["shadow_refused"]["overload"], 1);
  let_go();
}

// After one has found no place, uploads get only a share of the limit: not on a route in shadow.
TEST_F(GatewayModes, UploadsOfARouteInShadowAreNotHeldToTheirShareOfTheLimit) {
  config.server.loops = 1;
  for (RouteConfig& route : config.routes) route.buffer_request_max = 0;
  RunningGateway gateway(config);
  const auto upload = [](std::string_view path) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
  };
  Client first(gateway.port());
  EXPECT_EQ(first.ask(upload("/strict")).status, 100);
  ASSERT_TRUE(hold(gateway, "/strict"));
  EXPECT_EQ(Client(gateway.port()).ask(get("/strict")).status, 503);
  EXPECT_EQ(Client(gateway.port()).ask(upload("/strict")).status, 503);
  EXPECT_EQ(Client(gateway.port()).ask(upload("/lax")).status, 100);
  let_go();
}

// Otherwise a client could choose its mode by the spelling of its path.
TEST_F(GatewayModes, SpellingsOfAPathDoNotChooseAMode) {
  RunningGateway gateway(config);
  const Answer refused = Client(gateway.port()).ask(get("/lax/..%2fstrict"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.has("x-weir-reason: ambiguous_path\r\n"));
}

}  // namespace
}  // namespace weir::gateway
