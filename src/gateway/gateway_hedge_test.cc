// Hedged reads through the gateway: one permit, routes that opt out, writes; real sockets.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::RunningGateway;

/// A gateway before two origins that answer when they are told to.
class GatewayHedgeTest : public ::testing::Test {
 protected:
  GatewayHedgeTest() : config(gateway_config({a.address(), b.address()})) {
    config.hedge.enabled = true;
    config.server.loops = 1;
    config.upstreams[0].warm_connections = 2;
  }
  void start() {
    gateway.emplace(config);
    const auto ready = [this] {
      const auto page = nlohmann::json::parse(gateway->page("/endpoints"));
      int idle = 0;
      for (const auto& one : page["endpoints"]) idle += one["idle"].get<int>();
      return idle == 4;
    };
    ASSERT_TRUE(eventually(ready)) << "a hedge does not wait for a connection";
    client.emplace(gateway->port());
  }
  [[nodiscard]] bool both_hold() {
    return eventually([this] { return a.held() == 1 && b.held() == 1; });
  }
  [[nodiscard]] nlohmann::json app() const { return gateway->stats()["upstreams"]["app"]; }
  /// The origin may have the hedge before it is counted.
  [[nodiscard]] bool shows(const std::string& line) const {
    return eventually([&] { return gateway->page("/metrics").find(line) != std::string::npos; });
  }

  HeldOrigin a;
  HeldOrigin b;
  config::Config config;
  std::optional<RunningGateway> gateway;
  std::optional<Client> client;
};

TEST_F(GatewayHedgeTest, OneRequestHasOnePermitWhateverItsAttempts) {
  start();
  ASSERT_TRUE(client->send(testkit::kGet));
  ASSERT_TRUE(both_hold());
  EXPECT_EQ((*gateway)->status().in_flight, 1U);
  EXPECT_EQ(app()["in_flight"], 1);
  b.let_go();
  EXPECT_EQ(client->read().body, "done");
  EXPECT_TRUE(gateway->settled());
  EXPECT_TRUE(a.wait_for(0)) << "the loser's handler is told";
  EXPECT_TRUE(shows("weir_hedge_requests_total{upstream=\"app\"} 1\n"));
}

TEST_F(GatewayHedgeTest, ARouteOptsOut) {
  RouteConfig alone;
  alone.upstream = "app";
  alone.path = "/alone";
  alone.hedge = false;
  config.routes.insert(config.routes.begin(), alone);
  start();
  ASSERT_TRUE(client->send("GET /alone HTTP/1.1\r\nhost: t\r\n\r\n"));
  ASSERT_TRUE(eventually([this] { return a.held() + b.held() == 1; }));
  Client other(gateway->port());
  ASSERT_TRUE(other.send(testkit::kGet));  // is hedged: the time for the first one has passed, too
  ASSERT_TRUE(eventually([this] { return a.held() + b.held() == 3; }));
  EXPECT_TRUE(shows("weir_hedge_requests_total{upstream=\"app\"} 1\n"));
  EXPECT_TRUE(shows("weir_hedge_skipped_total{upstream=\"app\",reason=\"disabled\"} 1\n"));
  a.let_go();
  b.let_go();
  EXPECT_EQ(client->read().body, "done");
  EXPECT_EQ(other.read().body, "done");
}

TEST_F(GatewayHedgeTest, AWriteIsNotSentTwice) {
  start();
  ASSERT_TRUE(client->send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n"));
  ASSERT_TRUE(eventually([this] { return a.held() + b.held() == 1; }));
  Client other(gateway->port());
  ASSERT_TRUE(other.send(testkit::kGet));
  ASSERT_TRUE(eventually([this] { return a.held() + b.held() == 3; }));
  EXPECT_TRUE(shows("weir_hedge_requests_total{upstream=\"app\"} 1\n"));
  a.let_go();
  b.let_go();
  EXPECT_EQ(client->read().status, 200);
  EXPECT_EQ(other.read().status, 200);
}

TEST_F(GatewayHedgeTest, TheAccessLogTellsWhoWasLate) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("weir_hedge_log_" + std::to_string(::getpid()));
  config.admin.access_log = AccessLog::kAll;
  config.admin.access_log_file = path;
  start();
  ASSERT_TRUE(client->send(testkit::kGet));
  ASSERT_TRUE(both_hold());
  b.let_go();
  EXPECT_EQ(client->read().body, "done");
  std::string line;
  EXPECT_TRUE(eventually([&] { return !!std::getline(std::ifstream(path), line); }));
  const auto entry = nlohmann::json::parse(line);
  const bool a_was_late = entry["late_endpoint"] == a.address();
  EXPECT_EQ(entry["hedge"], a_was_late ? "won" : "lost");
  EXPECT_EQ(entry["endpoint"], b.address());
  EXPECT_EQ(entry["attempts"], 2);
  EXPECT_GE(entry["hedged_after_ms"], 5.0);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weir::gateway
