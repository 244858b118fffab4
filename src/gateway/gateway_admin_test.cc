// The admin endpoint, reloads and the drain of a running gateway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::Origin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;

struct AdminTest : ::testing::Test {
  Origin origin{testkit::echo};
  config::Config config = gateway_config({origin.address()});
};

TEST_F(AdminTest, EveryPageOfTheIndexIsThere) {
  RunningGateway gateway(config);
  Client(gateway.port()).get("/");
  ASSERT_TRUE(gateway.settled());
  EXPECT_THAT(gateway.page("/"), HasSubstr("/explain"));
  EXPECT_EQ(gateway.page("/healthz"), "ok\n");
  EXPECT_EQ(gateway.page("/readyz"), "ready\n");
  EXPECT_THAT(gateway.page("/nothing"), HasSubstr("no such page"));
  const json stats = json::parse(gateway.page("/stats"));
  EXPECT_EQ(stats["requests"]["answered"], 1);
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["normal"]["admitted"], 1);
  const json pools = json::parse(gateway.page("/pools"))["pools"];
  EXPECT_GE(pools["proxied_requests"]["peak"], 1);
  EXPECT_EQ(pools["request_heads"]["used"], 0);
  const json endpoints = json::parse(gateway.page("/endpoints"))["endpoints"];
  ASSERT_EQ(endpoints.size(), 1U);
  EXPECT_EQ(endpoints[0]["endpoint"], origin.address());
  EXPECT_EQ(endpoints[0]["answered"], 1);
  EXPECT_TRUE(endpoints[0]["available"]);
}

TEST_F(AdminTest, MetricsCountWhatHappened) {
  config.routes[0].path_prefix = "/api";
  RunningGateway gateway(config);
  Client client(gateway.port());
  client.get("/api");
  client.get("/elsewhere");
  ASSERT_TRUE(gateway.settled());
  const std::string page = gateway.page("/metrics");
  for (const char* line :
       {"weir_requests_received_total 2\n",
        "weir_requests_answered_total{upstream=\"app\",status=\"2xx\"} 1\n",
        "weir_requests_refused_total{upstream=\"none\",reason=\"no_route\"} 1\n",
        "weir_requests_active 0\n", "weir_admission_total{scope=\"app\",result=\"admitted\"} 1\n",
        "weir_admission_outcomes_total{scope=\"app\",outcome=\"ok\"} 1\n",
        "weir_upstream_attempts_total{upstream=\"app\"} 1\n",
        "weir_upstream_latency_seconds_count{upstream=\"app\"} 1\n",
        "weir_refusal_duration_seconds_count 1\n", "weir_admission_critical_shed_total 0\n",
        "weir_build_info{version=\""}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(AdminTest, TheConfigurationIsShownAsItStands) {
  RunningGateway gateway(config);
  EXPECT_THAT(gateway.page("/config"), HasSubstr(origin.address()));
}

TEST_F(AdminTest, ExplainSaysWhatWouldBeDecidedAndTakesNothing) {
  config.admission.inflight_max = 1;
  RunningGateway gateway(config);
  const auto ask = [&](std::string_view query) {
    return json::parse(gateway.page("/explain?" + std::string(query)));
  };
  EXPECT_EQ(ask("")["verdict"], "admitted");
  EXPECT_EQ(ask("class=low&actor=alice&upstream=app&bytes=1KiB")["request"]["bytes"], 1024);
  const json late = ask("deadline_ms=0");
  EXPECT_EQ(late["verdict"], "refused");
  EXPECT_EQ(late["reason"], "deadline");
  EXPECT_EQ(late["status"], 504);
  EXPECT_EQ(ask("class=critical&deadline_ms=0")["verdict"], "admitted");
  EXPECT_THAT(ask("class=urgent")["error"], HasSubstr("class"));
  EXPECT_THAT(ask("upstream=nowhere")["error"], HasSubstr("upstream"));
  EXPECT_THAT(ask("bytes=many")["error"], HasSubstr("bytes"));
  EXPECT_THAT(ask("attempt=second")["error"], HasSubstr("attempt"));
  EXPECT_TRUE(ask("attempt=10&&peer=p")["request"]["hedge"]);
  EXPECT_THAT(ask("clas=low")["error"], HasSubstr("clas: not one of route class"));
  EXPECT_EQ(gateway.stats()["upstreams"]["app"]["classes"]["normal"]["admitted"], 0);
}

TEST_F(AdminTest, ExplainTakesClassCostAndModesOfARoute) {
  RouteConfig lax = config.routes[0];
  lax.path_prefix = "/lax";
  lax.priority = Priority::kLow;
  lax.cost = 3;
  lax.modes.deadline = RuleMode::kShadow;
  RouteConfig answered;
  answered.path_prefix = "/answered";
  answered.answer.respond = 204;
  config.routes = {lax, answered, config.routes[0]};
  config.admission.modes.memory = RuleMode::kOff;
  RunningGateway gateway(config);
  const auto ask = [&](std::string_view query) {
    return json::parse(gateway.page("/explain?" + std::string(query)));
  };
  const json shown = ask("route=0&deadline_ms=0");
  EXPECT_EQ(shown["request"]["route"], 0);
  EXPECT_EQ(shown["request"]["class"], "low");
  EXPECT_EQ(shown["request"]["cost"], 3);
  EXPECT_EQ(shown["verdict"], "admitted");
  EXPECT_EQ(shown["steps"][0]["mode"], "shadow");
  EXPECT_FALSE(shown["steps"][0]["passes"]);
  EXPECT_EQ(shown["steps"][1]["mode"], "off");  // inherited
  EXPECT_EQ(ask("route=2&deadline_ms=0")["verdict"], "refused");
  EXPECT_EQ(ask("deadline_ms=0")["request"]["route"], nullptr);
  EXPECT_EQ(ask("route=0&class=high")["request"]["class"], "high");
  EXPECT_THAT(ask("route=1")["error"], HasSubstr("without admission"));
  for (const char* wrong : {"route=3", "route=x", "route=-1"}) {
    EXPECT_THAT(ask(wrong)["error"], HasSubstr("0 to 2")) << wrong;
  }
}

TEST_F(AdminTest, OnlyReadingIsAllowed) {
  RunningGateway gateway(config);
  const std::string address = gateway->admin_listening();
  std::uint16_t port = 0;
  std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
  EXPECT_EQ(Client(port).ask("POST /stats HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n").status,
            405);
}

TEST_F(AdminTest, OnlyKnownHostsAreAnsweredAndAReloadAddsOne) {
  RunningGateway gateway(config);
  const std::uint16_t port = parse_net_address(gateway->admin_listening())->port;
  const auto ask = [&](std::string_view host) {
    return Client(port).ask("GET /stats HTTP/1.1\r\nhost: " + std::string(host) + "\r\n\r\n");
  };
  EXPECT_EQ(ask("127.0.0.1:" + std::to_string(port)).status, 200);
  EXPECT_EQ(ask("localhost").status, 200);
  const Answer stranger = ask("evil.example");
  EXPECT_EQ(stranger.status, 421);
  EXPECT_THAT(stranger.body, HasSubstr("admin.hosts"));
  config::Config next = config;
  next.admin.hosts = {"evil.example"};
  EXPECT_TRUE(gateway->reload(next).ok());
  EXPECT_EQ(ask("evil.example").status, 200);
}

TEST_F(AdminTest, AProbeMayAskByAnyNameAndNobodyElseMay) {
  config.admin.actions = ActionsMode::kSocket;
  config.admin.actions_socket = ::testing::TempDir() + "/any_name_" + std::to_string(::getpid());
  RunningGateway gateway(config);
  const std::uint16_t port = parse_net_address(gateway->admin_listening())->port;
  const auto ask = [&](const std::string& method, const std::string& path) {
    return Client(port)
        .ask(method + " " + path + " HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n")
        .status;
  };
  EXPECT_EQ(ask("GET", "/healthz"), 200);
  EXPECT_EQ(ask("GET", "/readyz"), 200);
  for (const char* path : {"/",          "/metrics",   "/stats",    "/pools",
                           "/actors",    "/endpoints", "/diagnose", "/live",
                           "/config",    "/overrides", "/explain",  "/explain?id=x",
                           "/recording", "/nothing",   "/healthz/", "/healthz/../stats",
                           "//healthz",  "/readyz%2f", "/Healthz",  "/app.js"}) {
    EXPECT_EQ(ask("GET", path), 421) << path;
  }
  EXPECT_EQ(ask("POST", "/actions/reload"), 421);
  EXPECT_EQ(ask("POST", "/healthz"), 405);
}

TEST_F(AdminTest, EveryPageTellsBrowsersToKeepToIt) {
  RunningGateway gateway(config);
  const std::uint16_t port = parse_net_address(gateway->admin_listening())->port;
  for (const char* path : {"/", "/stats", "/metrics", "/config", "/nothing", "/explain?class=x"}) {
    const Answer answer = Client(port).get(path);
    EXPECT_TRUE(answer.has("x-content-type-options: nosniff\r\n")) << path;
    EXPECT_TRUE(answer.has("referrer-policy: no-referrer\r\n")) << path;
    EXPECT_TRUE(answer.has("content-security-policy: default-src 'none';")) << path;
  }
}

TEST(AdminReady, AnUpstreamWithoutAnAvailableEndpointCountsByOption) {
  config::Config config = gateway_config({testkit::unused_address()});
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 503);
  EXPECT_EQ(gateway.page("/readyz"), "ready\n");
  config.admin.ready_needs_upstreams = true;
  EXPECT_TRUE(gateway->reload(config).ok());
  // The first ejection lasts 0.1 s, so it is repeated until the page is read within one.
  EXPECT_TRUE(eventually([&] {
    Client(gateway.port()).get("/");
    return gateway.page("/readyz") == "upstream app has no available endpoint\n";
  }));
}

TEST_F(AdminTest, AnnouncingADrainTurnsReadinessAndNothingElse) {
  RunningGateway gateway(config);
  gateway->announce_drain();
  EXPECT_EQ(gateway.page("/readyz"), "draining\n");
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
}

TEST_F(AdminTest, AReloadChangesRoutesAndLimitsAndLeavesTheRest) {
  RunningGateway gateway(config);
  Client client(gateway.port());
  EXPECT_EQ(client.get("/").status, 200);
  config::Config next = config;
  next.routes[0].path_prefix = "/new";
  next.admission.max_concurrent = 77;
  next.upstreams[0].limit.policy = LimitKind::kFixed;
  next.upstreams[0].limit.initial_limit = 5;
  next.server.max_connections = 99;  // needs a restart
  const ReloadReport report = gateway->reload(next);
  EXPECT_TRUE(report.ok()) << report.refused;
  EXPECT_EQ(report.deferred.size(), 1U);
  EXPECT_EQ(client.get("/").status, 404);
  EXPECT_EQ(client.get("/new").status, 200);
  const json stats = gateway.stats();
  EXPECT_EQ(stats["admission"]["max_concurrent"], 77);
  EXPECT_EQ(stats["upstreams"]["app"]["limit"], 5);
  EXPECT_EQ(stats["reloads"]["ok"], 1);
  EXPECT_THAT(gateway.page("/config"), HasSubstr("max_connections = 256"));
  EXPECT_EQ(gateway->reload(next).applied.size(), 0U);
}

TEST_F(AdminTest, AReloadThatCannotBeIsRefusedAsAWhole) {
  RunningGateway gateway(config);
  config::Config next = config;
  next.admission.max_concurrent = 77;
  next.upstreams.push_back(next.upstreams[0]);
  next.upstreams[1].name = "new";
  next.upstreams[1].max_connections = 100000;  // more than there is room for
  next.routes[0].upstream = "new";
  const ReloadReport report = gateway->reload(next);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.refused, HasSubstr("reload.connections_spare"));
  EXPECT_EQ(gateway.stats()["upstreams"].size(), 1U);
  EXPECT_EQ(gateway.stats()["admission"]["max_concurrent"], 1024);
  EXPECT_EQ(gateway.stats()["reloads"]["refused"], 1);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
}

TEST_F(AdminTest, AReloadThatOnlyARestartCouldCompleteIsRefused) {
  RunningGateway gateway(config);
  config::Config next = config;
  next.admission.max_concurrent = 16000;      // live …
  next.admission.actor_table_size = 1 << 20;  // … but it needs this table, which is not live
  ASSERT_EQ(next.validate(), ConfigErrors{});
  const ReloadReport report = gateway->reload(next);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.refused, HasSubstr("actor_table_size"));
  EXPECT_EQ(gateway.stats()["admission"]["max_concurrent"], 1024);
}

TEST_F(AdminTest, AReloadWithMoreWaitingThanTheActorTableHoldsIsRefused) {
  for (int i = 0; i < 9; ++i) {
    config.upstreams.push_back(config.upstreams[0]);
    config.upstreams.back().name = "more" + std::to_string(i);
  }
  RunningGateway gateway(config);
  config::Config next = config;
  next.admission.waiting_max = 4096;
  next.admission.actor_table_size = 131072;  // only to make the file valid
  ASSERT_EQ(next.validate(), ConfigErrors{});
  const ReloadReport report = gateway->reload(next);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.refused, HasSubstr("admission.waiting_max = 4096"));
  next.admission.waiting_max = 1100;
  EXPECT_TRUE(gateway->reload(next).ok()) << "the table has some room to spare";
}

TEST_F(AdminTest, ADrainLetsRequestsFinishAndSaysThatItIsOn) {
  std::atomic<ServerStream*> held = nullptr;
  Origin slow([&](ScriptedHandler& handler) {
    handler.complete = [&](ServerStream& stream) { held = &stream; };
  });
  RunningGateway gateway(gateway_config({slow.address()}));
  Client client(gateway.port());
  const std::uint16_t port = gateway.port();
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  ASSERT_TRUE(eventually([&] { return held.load() != nullptr; }));
  EXPECT_FALSE(gateway->drain(Duration(0)));
  EXPECT_EQ(gateway.page("/readyz"), "draining\n");
  EXPECT_FALSE(Client(port).connected());
  held.load()->loop().post([&] { reply(*held.load(), 200, "done"); });
  const Answer answer = client.read();
  EXPECT_EQ(answer.body, "done");
  EXPECT_TRUE(answer.has("connection: close\r\n"));
  EXPECT_TRUE(gateway->drain(std::chrono::seconds(10)));
}

TEST(GatewayStart, SaysWhichAddressIsTaken) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address()});
  config.server.listen = {origin.address()};
  Gateway taken(config);
  const auto started = taken.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_THAT(started.error().message, HasSubstr(origin.address() + ": address already in use"));
  EXPECT_EQ(started.error().about, GatewayError::About::kListen);
  config = gateway_config({origin.address()});
  config.admin.listen = *parse_net_address(origin.address());
  Gateway admin_taken(config);
  const auto admin_started = admin_taken.start();
  ASSERT_FALSE(admin_started.has_value());
  EXPECT_EQ(admin_started.error().about, GatewayError::About::kAdmin);
}

TEST(GatewayStart, RefusesToStandInFrontOfItself) {
  std::string address;
  {
    Origin origin(testkit::echo);
    address = origin.address();
  }
  config::Config config = gateway_config({address});
  config.server.listen = {address};
  Gateway circle(config);
  const auto started = circle.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_THAT(started.error().message, HasSubstr("itself"));
}

TEST(GatewayStart, RefusesToStandInFrontOfAllItsAddresses) {
  std::string address;
  {
    Origin origin(testkit::echo);
    address = origin.address();
  }
  config::Config config = gateway_config({address});
  config.server.listen = {address.substr(address.find(':'))};  // every address of this machine
  Gateway circle(config);
  const auto started = circle.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_THAT(started.error().message, HasSubstr("itself"));
}

TEST(GatewayStart, RefusesAConfigurationAboveItsMemory) {
  config::Config config = gateway_config({"127.0.0.1:1"});
  config.server.memory_max = 1024 * 1024;
  Gateway gateway(config);
  const auto started = gateway.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_THAT(started.error().message, HasSubstr("memory_max"));
  EXPECT_THAT(started.error().message, HasSubstr("weir budget"));
}

TEST(GatewayAdmin, ItsAdminAddressIsNoUpstream) {
  const std::string address = testkit::unused_address();
  config::Config config = gateway_config({address});
  config.admin.listen = *parse_net_address(address);
  Gateway gateway(config);
  const auto started = gateway.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().message,
            "upstream app: endpoint " + address +
                " is the admin address of this gateway: its pages are for operators only");
}

}  // namespace
}  // namespace weir::gateway
