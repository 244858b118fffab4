// The gateway and its upstreams: TLS, sources of endpoints, reloads, pages; real sockets.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "weir/experimental/config/upstream_url.h"
#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/io/self_signed.h"

#include "gateway_testing.h"
#include "io/dns_server_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::answer_of;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::NamedOrigin;
using testkit::Origin;
using testkit::RunningGateway;
using testkit::RunningServer;

/// An origin with TLS, whose certificate is its own authority.
struct TlsOrigin {
  explicit TlsOrigin(const std::vector<std::string>& names, bool http2 = false)
      : made(io::make_certificate({.names = names, .signer_pem = {}, .authority = true})),
        server(config_with(made, http2), testkit::every_loop(testkit::echo)) {}
  static ServerConfig config_with(const io::MadeCertificate& made, bool http2) {
    ServerConfig config = testkit::small_config();
    config.tls.listen = {"127.0.0.1:0"};
    config.tls.certificate_pem = made.certificate_pem;
    config.tls.private_key_pem = made.key_pem;
    config.tls.http2 = http2;
    return config;
  }
  [[nodiscard]] std::string address() { return server->tls_addresses().front().to_string(); }

  io::MadeCertificate made;
  RunningServer server;
};

config::Config tls_config(TlsOrigin& origin) {
  config::Config config = gateway_config({origin.address()});
  config.upstreams[0].tls_enabled = true;
  config.upstreams[0].tls.ca_pem = origin.made.certificate_pem;
  return config;
}

/// A file of this test.
struct TestFile {
  TestFile()
      : path(std::filesystem::temp_directory_path() /
             ("weir_gateway_upstream_" + std::to_string(::getpid()) + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~TestFile() { std::filesystem::remove(path); }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  void replace(const std::string& text) const {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  const std::string path;
};

nlohmann::json endpoints(const RunningGateway& gateway) {
  return nlohmann::json::parse(gateway.page("/endpoints"));
}

// ---- TLS

TEST(GatewayUpstream, AnEndpointWithATrustedCertificateIsReachedByTls) {
  for (const bool http2 : {false, true}) {
    TlsOrigin origin({"127.0.0.1"}, http2);
    RunningGateway gateway(tls_config(origin));
    Client client(gateway.port());
    for (int i = 0; i < 3; ++i) {
      const Answer answer = client.get("/a");
      EXPECT_EQ(answer.status, 200) << http2 << answer.body;
      EXPECT_THAT(answer.body, HasSubstr("GET /a\n"));
    }
    EXPECT_EQ(origin.server.stats().h2_connections > 0, http2) << "as ALPN agrees";
  }
}

TEST(GatewayUpstream, ACertificateForAnotherNameIsNotAccepted) {
  TlsOrigin origin({"other.test"});
  config::Config config = tls_config(origin);
  config.upstreams[0].hold_max = Duration(0);
  {
    RunningGateway gateway(config);
    EXPECT_EQ(Client(gateway.port()).get("/").status, 502);
    EXPECT_THAT(gateway.page("/metrics"),
                HasSubstr("weir_upstream_failures_total{upstream=\"app\",reason=\"tls_failed\"} "));
    EXPECT_THAT(gateway.page("/metrics"), Not(HasSubstr("reason=\"tls_failed\"} 0\n")));
  }
  config.upstreams[0].tls.server_name = "other.test";
  EXPECT_EQ(Client(RunningGateway(config).port()).get("/").status, 200) << "asked for by name";
  config.upstreams[0].tls = {};
  config.upstreams[0].tls.insecure = true;
  RunningGateway insecure(config);
  EXPECT_EQ(Client(insecure.port()).get("/").status, 200);
  EXPECT_THAT(insecure.page("/config"), HasSubstr("[upstream.tls]\nenabled = true\n"));
  EXPECT_THAT(insecure.page("/config"), HasSubstr("\ninsecure = true\n"));
}

TEST(GatewayUpstream, ABadFileIsAStartupErrorAndARefusedReload) {
  TlsOrigin origin({"127.0.0.1"});
  config::Config config = tls_config(origin);
  config.upstreams[0].tls.ca_pem.clear();
  config.upstreams[0].tls.ca = "/nonexistent/ca.pem";
  Gateway failing(config);
  const auto started = failing.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("upstream app: [upstream.tls] "));
  EXPECT_THAT(started.error().message, HasSubstr("/nonexistent/ca.pem"));
  EXPECT_EQ(upstream_tls_objection(config), started.error().message) << "as weir check says";

  const TestFile ca;
  ca.replace(origin.made.certificate_pem);
  config.upstreams[0].tls.ca = ca.path;
  RunningGateway gateway(config);
  EXPECT_EQ(upstream_tls_objection(config), "");
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
  config::Config next = config;
  next.upstreams[0].tls.ca = "/nonexistent/ca.pem";
  const ReloadReport report = gateway->reload(next);
  EXPECT_THAT(report.refused, HasSubstr("/nonexistent/ca.pem"));
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200) << "the old context stays";
  next.upstreams[0].tls.ca = ca.path;
  next.upstreams[0].tls.min_version = io::TlsVersion::k13;
  EXPECT_TRUE(gateway->reload(next).ok());
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
}

TEST(GatewayUpstream, TheSchemeOfAUrlDecidesTheProtocol) {
  Origin origin(testkit::echo);
  for (const std::string scheme : {"", "http://", "h2c://"}) {
    config::Config config = gateway_config({origin.address()});
    const std::vector<std::string> urls = {scheme + origin.address()};
    config.upstreams = {*config::upstream_from(urls)};
    const std::uint64_t before = origin.server().stats().h2_requests;
    RunningGateway gateway(config);
    EXPECT_EQ(Client(gateway.port()).get("/").status, 200) << scheme;
    EXPECT_EQ(origin.server().stats().h2_requests > before, scheme == "h2c://");
  }
}

// ---- sources

TEST(GatewayUpstream, ANameIsResolvedAndFollowed) {
  NamedOrigin origin("found");
  io::TestDnsServer dns;
  dns.set("api.test", io::DnsType::kA, {.records = {io::dns_bytes::a("127.0.0.1")}});
  config::Config config = gateway_config({"dns:api.test" + origin.port()});
  config.dns.servers = {dns.address()};
  RunningGateway gateway(config);
  EXPECT_EQ(answer_of(gateway), "found") << "resolved before start() returned";
  const nlohmann::json page = endpoints(gateway);
  EXPECT_EQ(page["endpoints"][0]["endpoint"], origin.address());
  EXPECT_EQ(page["sources"][0]["source"], "dns:api.test" + origin.port());
  EXPECT_EQ(page["sources"][0]["known"], true);
  EXPECT_EQ(page["sources"][0]["error"], "");
}

TEST(GatewayUpstream, StartsWithoutEndpointsIfANameCannotBeResolved) {
  io::TestDnsServer dns;
  dns.set("api.test", io::DnsType::kA, {.mode = io::TestDnsServer::Mode::kServFail, .records = {}});
  dns.set("api.test", io::DnsType::kAaaa,
          {.mode = io::TestDnsServer::Mode::kServFail, .records = {}});
  config::Config config = gateway_config({"api.test:80"});
  config.dns.servers = {dns.address()};
  config.dns.tries = 1;
  config.upstreams[0].hold_max = std::chrono::milliseconds(20);
  RunningGateway gateway(config);
  const Answer answer = Client(gateway.port()).get("/");
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("x-weir-reason: no_endpoint\r\n"));
  EXPECT_EQ(endpoints(gateway)["endpoints"].size(), 0U);
  EXPECT_NE(endpoints(gateway)["sources"][0]["error"], "");
}

TEST(GatewayUpstream, AFileOfEndpointsIsFollowedWhileRequestsRun) {
  NamedOrigin a("a");
  NamedOrigin b("b");
  const TestFile file;
  file.replace(a.address() + "\n");
  RunningGateway gateway(gateway_config({"file:" + file.path}));
  EXPECT_EQ(answer_of(gateway), "a");
  file.replace(b.address() + "\n");
  EXPECT_TRUE(eventually([&] { return answer_of(gateway) == "b"; }));
  file.replace("this is no endpoint\n");
  EXPECT_TRUE(eventually([&] { return endpoints(gateway)["sources"][0]["error"] != ""; }));
  EXPECT_EQ(answer_of(gateway), "b") << "an error removes nothing";
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayUpstream, EndpointsComeGoAndDrainByReload) {
  NamedOrigin a("a");
  NamedOrigin b("b");
  config::Config config = gateway_config({a.address()});
  config.upstreams[0].balance = policy::Balance::kRoundRobin;
  RunningGateway gateway(config);
  EXPECT_EQ(answer_of(gateway), "a");
  const auto change = [&](std::initializer_list<std::string> texts) {
    config.upstreams[0].endpoints.clear();
    for (const std::string& text : texts) {
      config.upstreams[0].endpoints.push_back(*upstream::parse_source(text));
    }
    const ReloadReport report = gateway->reload(config);
    EXPECT_TRUE(report.ok()) << report.refused;
    EXPECT_EQ(report.applied.size(), 1U);
    EXPECT_TRUE(report.deferred.empty());
  };
  change({a.address() + " drain=true", b.address()});
  EXPECT_TRUE(eventually([&] { return answer_of(gateway) == "b"; }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answer_of(gateway), "b");
  const nlohmann::json draining = endpoints(gateway)["endpoints"][0];
  EXPECT_EQ(draining["state"], "draining");
  EXPECT_EQ(draining["reason"], "operator");
  EXPECT_EQ(draining["available"], false);
  change({a.address(), b.address() + " drain=true"});
  EXPECT_TRUE(eventually([&] { return answer_of(gateway) == "a"; }));
  change({b.address()});
  EXPECT_TRUE(eventually([&] { return answer_of(gateway) == "b"; }));
  EXPECT_EQ(endpoints(gateway)["endpoints"].size(), 1U);
}

// ---- pages

/// The value of the first sample that begins with `series`.
double value_of(const std::string& page, const std::string& series) {
  const std::size_t at = page.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size() + 2));
}

TEST(GatewayUpstream, TotalsDoNotGoBackwardsWhenAnEndpointLeaves) {
  NamedOrigin a("a");
  NamedOrigin b("b");
  config::Config config = gateway_config({a.address()});
  RunningGateway gateway(config);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(answer_of(gateway), "a");
  config.upstreams[0].endpoints = {*upstream::parse_source(b.address())};
  EXPECT_TRUE(gateway->reload(config).ok());
  EXPECT_TRUE(eventually([&] { return answer_of(gateway) == "b"; }));
  const std::string page = gateway.page("/metrics");
  EXPECT_GE(value_of(page, "weir_upstream_attempts_total{upstream=\"app\"}"), 6);
  EXPECT_THAT(page, Not(HasSubstr("endpoint=\"" + a.address() + "\"")));
}

TEST(GatewayUpstream, MetricsSayWhatHappenedToEachEndpoint) {
  NamedOrigin origin("a");
  RunningGateway gateway(gateway_config({origin.address()}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_of(gateway), "a");
  ASSERT_TRUE(gateway.settled());
  const std::string page = gateway.page("/metrics");
  const std::string labels = "{upstream=\"app\",endpoint=\"" + origin.address() + "\",";
  EXPECT_EQ(value_of(page, "weir_endpoint_requests_total" + labels + "outcome=\"ok\"}"), 3);
  EXPECT_EQ(value_of(page, "weir_endpoint_requests_total" + labels + "outcome=\"failed\"}"), 0);
  EXPECT_GE(value_of(page, "weir_endpoint_connections" + labels + "state=\"idle\"}"), 1);
  EXPECT_EQ(value_of(page, "weir_upstream_retry_budget_tokens{upstream=\"app\"}"), 100);
  EXPECT_EQ(value_of(page, "weir_upstream_connection_queue{upstream=\"app\"}"), 0);
  EXPECT_EQ(value_of(page, "weir_upstream_held_requests{upstream=\"app\"}"), 0);
  EXPECT_EQ(value_of(page, "weir_upstream_ejections_total{upstream=\"app\",cause=\"slow\"}"), 0);
  EXPECT_EQ(
      value_of(page,
               "weir_upstream_retry_decisions_total{upstream=\"app\",reason=\"budget_empty\"}"),
      0);
  const nlohmann::json one = endpoints(gateway)["endpoints"][0];
  EXPECT_EQ(one["state"], "available");
  EXPECT_EQ(one["reason"], "new");
  for (const char* key : {"since_ms", "for_ms", "p50_ms", "p99_ms", "cohort_p50_ms"}) {
    EXPECT_TRUE(one.contains(key)) << key;
  }
}

TEST(GatewayUpstream, AFailedConnectEjectsAndIsCounted) {
  config::Config config = gateway_config({testkit::unused_address()});
  config.upstreams[0].hold_max = std::chrono::milliseconds(10);
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 503);
  const std::string page = gateway.page("/metrics");
  EXPECT_GE(
      value_of(page, "weir_upstream_ejections_total{upstream=\"app\",cause=\"connect_failed\"}"),
      1);
  EXPECT_EQ(value_of(page, "weir_upstream_held_total{upstream=\"app\"}"), 1);
}

TEST(GatewayUpstream, RequestsWithTheSameKeyGoToTheSameEndpoint) {
  NamedOrigin a("a");
  NamedOrigin b("b");
  config::Config config = gateway_config({a.address(), b.address()});
  config.upstreams[0].balance = policy::Balance::kHash;
  config.upstreams[0].hash_by = "header:x-tenant";
  RunningGateway gateway(config);
  Client client(gateway.port());
  std::string seen;
  for (int tenant = 0; tenant < 32; ++tenant) {
    const std::string ask =
        "GET / HTTP/1.1\r\nhost: t\r\nX-Tenant: " + std::to_string(tenant) + "\r\n\r\n";
    const std::string first = client.ask(ask).body;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.ask(ask).body, first);
    seen += first;
  }
  EXPECT_THAT(seen, HasSubstr("a"));
  EXPECT_THAT(seen, HasSubstr("b"));
}

}  // namespace
}  // namespace weir::gateway
