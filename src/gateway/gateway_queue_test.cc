#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway_testing.h"

// What clients and operators see of the queues to endpoints.

namespace weir::gateway {
namespace {

using namespace testkit;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::string_view kLowGet = "GET /low HTTP/1.1\r\nhost: t\r\n\r\n";

/// One connection, for which two requests wait, and a third one in the overflow ring.
config::Config one_connection(const std::string& origin) {
  config::Config config = with_fixed_limit(gateway_config({origin}), 64);
  config.server.loops = 1;  // the newest takes the place of the oldest of its own loop
  config.upstreams[0].max_connections = 1;
  config.upstreams[0].outgoing_queue_size = 2;
  config.upstreams[0].outgoing_overflow_size = 1;
  config.upstreams[0].connect_timeout = std::chrono::seconds(20);
  RouteConfig low = config.routes[0];
  low.path = "/low";
  low.priority = Priority::kLow;
  config.routes.insert(config.routes.begin(), low);
  return config;
}

json queue_of(const RunningGateway& gateway) {
  return json::parse(gateway.page("/endpoints"))["endpoints"][0]["queue"];
}

/// The hint in milliseconds; 0: none.
int hint_in(const Answer& answer) {
  constexpr std::string_view kField = "x-weir-retry-after-ms: ";
  const std::size_t at = answer.head.find(kField);
  int ms = 0;
  if (at == std::string::npos) return ms;
  const char* from = answer.head.data() + at + kField.size();
  std::from_chars(from, answer.head.data() + answer.head.size(), ms);
  return ms;
}

TEST(GatewayQueue, WhoHasNoPlaceIsToldToComeBackWhenTheQueueAdvises) {
  HeldOrigin origin;
  RunningGateway gateway(one_connection(origin.address()));
  Client holder(gateway.port());
  ASSERT_TRUE(origin.hold(holder));
  Client waiting[3] = {Client(gateway.port()), Client(gateway.port()), Client(gateway.port())};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(waiting[i].send(kGet));
    ASSERT_TRUE(eventually([&] {
      const json queue = queue_of(gateway);
      return queue["primary"].get<int>() + queue["overflow"].get<int>() == i + 1;
    }));
  }
  EXPECT_EQ(queue_of(gateway)["state"], "saturated");
  EXPECT_TRUE(
      eventually([&] { return gateway.stats()["upstreams"]["app"]["overloaded"] == true; }));

  const Answer refused = Client(gateway.port()).ask(kLowGet);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: no_connection\r\n")) << refused.head;
  EXPECT_GE(hint_in(refused), 500) << refused.head;

  Client newest(gateway.port());
  ASSERT_TRUE(newest.send(kGet));
  const Answer dropped = waiting[2].read();
  EXPECT_EQ(dropped.status, 503);
  EXPECT_TRUE(dropped.has("x-weir-reason: no_connection\r\n")) << dropped.head;
  EXPECT_GE(hint_in(dropped), 500) << dropped.head;

  const std::string page = gateway.page("/metrics");
  const std::string labels = "{upstream=\"app\",endpoint=\"" + origin.address() + "\"";
  for (const std::string& line :
       {"weir_endpoint_queue_state" + labels + "} 4\n",
        "weir_endpoint_queued_requests" + labels + ",place=\"primary\"} 2\n",
        "weir_endpoint_queued_requests" + labels + ",place=\"overflow\"} 1\n",
        "weir_endpoint_queue_offered_total" + labels + "} 6\n",
        "weir_endpoint_queue_ended_total" + labels + ",end=\"dropped\"} 1\n",
        "weir_endpoint_queue_ended_total" + labels + ",end=\"refused\"} 1\n",
        "weir_endpoint_queue_ended_total" + labels + ",end=\"sent\"} 1\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  // Our own shortage is not overload of the service.
  EXPECT_THAT(page,
              HasSubstr("weir_admission_outcomes_total{scope=\"app\",outcome=\"overload\"} 0"));

  for (Client* client : {&holder, &waiting[0], &waiting[1], &newest}) {
    ASSERT_TRUE(origin.wait_for(1));
    origin.let_go();
    EXPECT_EQ(client->read().status, 200);
  }
  EXPECT_EQ(queue_of(gateway)["state"], "healthy");
  EXPECT_TRUE(
      eventually([&] { return gateway.stats()["upstreams"]["app"]["overloaded"] == false; }));
}

TEST(GatewayQueue, TheClassOfARequestDecidesAboutItsTurn) {
  HeldOrigin origin;
  config::Config config = one_connection(origin.address());
  RunningGateway gateway(config);
  Client holder(gateway.port());
  ASSERT_TRUE(origin.hold(holder));
  Client low(gateway.port());
  Client normal(gateway.port());
  ASSERT_TRUE(low.send(kLowGet));
  ASSERT_TRUE(eventually([&] { return queue_of(gateway)["primary"] == 1; }));
  ASSERT_TRUE(normal.send(kGet));
  ASSERT_TRUE(eventually([&] { return queue_of(gateway)["primary"] == 2; }));
  for (Client* client : {&holder, &normal, &low}) {
    ASSERT_TRUE(origin.wait_for(1));
    origin.let_go();
    EXPECT_EQ(client->read().status, 200);
  }
}

}  // namespace
}  // namespace weir::gateway
