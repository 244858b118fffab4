#include "weir/experimental/config/weir_config.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/net_address.h"

namespace weir::config {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> keys(const ConfigErrors& errors) {
  std::vector<std::string> out;
  for (const ConfigError& error : errors) out.push_back(error.key);
  return out;
}

upstream::UpstreamConfig upstream(std::string name) {
  upstream::UpstreamConfig made;
  made.name = std::move(name);
  made.endpoints = {*upstream::parse_source("127.0.0.1:3000")};
  return made;
}

Config with_upstreams(std::initializer_list<const char*> names) {
  Config config;
  for (const char* name : names) config.upstreams.push_back(upstream(name));
  return config;
}

TEST(Config, DefaultsAreValid) {
  EXPECT_THAT(keys(Config().validate()), IsEmpty());
  EXPECT_THAT(keys(Config().warnings()), ElementsAre("upstream"));
  EXPECT_THAT(keys(with_upstreams({"app"}).warnings()), IsEmpty());
}

TEST(Config, OneUpstreamWithoutARouteGetsEverything) {
  EXPECT_THAT(Config().routes_in_force(), IsEmpty());
  EXPECT_THAT(with_upstreams({"a", "b"}).routes_in_force(), IsEmpty());
  Config config = with_upstreams({"app"});
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  ASSERT_EQ(config.routes_in_force().size(), 1U);
  gateway::RouteConfig everything;
  everything.upstream = "app";
  EXPECT_EQ(config.routes_in_force()[0], everything);
  everything.path_prefix = "/only";
  config.routes = {everything};
  EXPECT_EQ(config.routes_in_force(), config.routes);
}

TEST(Config, FaultsOfEveryLayerCarryTheKeyOfTheFile) {
  Config config = with_upstreams({"app"});
  config.server.max_connections = 0;
  config.admission.inflight_max = 0;
  config.admission.limit.vegas_alpha = std::numeric_limits<double>::quiet_NaN();
  config.admission.classes.caps[3] = 20000;
  config.memory.poll_interval = Duration(0);
  config.admin.access_log_sample = 2;
  config.actors.api_key_header = "not a token";
  config.upstreams[0].connect_timeout = Duration(0);
  config.routes.resize(1);
  const auto found = keys(config.validate());
  for (const char* key :
       {"server.max_connections", "actors.inflight_max", "admission.limit.vegas_alpha",
        "priority.low_limit", "memory.poll_interval_ms", "admin.access_log_sample",
        "actors.api_key_header", "upstream[0].connect_timeout_ms", "route[0].upstream"}) {
    EXPECT_THAT(found, Contains(key));
  }
}

TEST(Config, TlsNeedsCertificateAndKeyAndSomebodyToTrust) {
  Config config = with_upstreams({"app"});
  io::TlsConfig& tls = config.server.tls;
  tls.certificate = "/etc/weir/chain.pem";
  EXPECT_THAT(keys(config.validate()), ElementsAre("tls.private_key"));
  EXPECT_EQ(config.validate()[0].allowed,
            "the PEM file with the key of tls.certificate (/etc/weir/chain.pem), which may be the "
            "same file");
  tls.private_key = "/etc/weir/key.pem";
  EXPECT_EQ(config.validate(), ConfigErrors{});
  tls.certificate.clear();
  EXPECT_THAT(keys(config.validate()), ElementsAre("tls.certificate"));
  tls = {};
  tls.client_certificate = io::ClientCertificate::kRequired;
  EXPECT_THAT(keys(config.validate()), ElementsAre("tls.client_ca"));
}

TEST(Config, TlsAloneMayBeListenedFor) {
  Config config = with_upstreams({"app"});
  config.server.listen.clear();
  EXPECT_THAT(keys(config.validate()), ElementsAre("listen.addresses"));
  config.server.tls.certificate = "/etc/weir/chain.pem";
  config.server.tls.private_key = "/etc/weir/key.pem";
  EXPECT_EQ(config.validate(), ConfigErrors{});
  config.server.tls.listen = {"localhost:443"};
  EXPECT_THAT(keys(config.validate()), ElementsAre("tls.listen"));
}

TEST(Config, ATlsBudgetMustHoldEveryHandshakeAndEveryIdleConnection) {
  Config config = with_upstreams({"app"});
  config.server.tls.certificate = "/etc/weir/chain.pem";
  config.server.tls.private_key = "/etc/weir/key.pem";
  config.server.tls.memory_budget = config.server.tls_memory_least() - 1;
  EXPECT_THAT(keys(config.validate()), ElementsAre("tls.memory_budget"));
  config.server.tls.memory_budget += 1;
  EXPECT_EQ(config.validate(), ConfigErrors{});
}

TEST(Config, ListenersMustBeNumeric) {
  Config config = with_upstreams({"app"});
  config.server.listen = {"localhost:80"};
  EXPECT_THAT(keys(config.validate()), Contains("listen.addresses"));
  config.server.listen = {};
  EXPECT_THAT(keys(config.validate()), Contains("listen.addresses"));
  config.server.listen = {":0", "unix:@weir"};
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  config.admin.listen = *parse_net_address("localhost:9901");
  EXPECT_THAT(keys(config.validate()), ElementsAre("admin.listen"));
}

TEST(Config, ProxyHeadersAreRequiredOnListedAddressesAndFromNamedProxies) {
  Config config;
  config.server.listen = {"127.0.0.1:8080", "unix:/run/weir.sock"};
  config.server.proxy_protocol = {"127.0.0.1:8081"};
  config.trust.proxies = {*parse_ip_range("192.0.2.10")};
  ConfigErrors errors = config.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "listen.proxy_protocol");
  config.server.proxy_protocol = {"127.0.0.1:8080"};
  EXPECT_EQ(config.validate(), ConfigErrors{});
  config.trust.proxies.clear();
  errors = config.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "trust.proxies");
  EXPECT_EQ(errors[0].value, "[]");
  EXPECT_EQ(errors[0].allowed,
            "the addresses of the proxies that connect to 127.0.0.1:8080, which "
            "listen.proxy_protocol names");
  config.server.proxy_protocol = {"unix:/run/weir.sock"};
  EXPECT_EQ(config.validate(), ConfigErrors{}) << "its file says who may connect";
}

TEST(Config, UpstreamNamesAreUniqueAndPlain) {
  EXPECT_THAT(keys(with_upstreams({"a", "a"}).validate()), Contains("upstream[1].name"));
  EXPECT_THAT(keys(with_upstreams({"a b"}).validate()), ElementsAre("upstream[0].name"));
  EXPECT_THAT(keys(with_upstreams({"a/b"}).validate()), ElementsAre("upstream[0].name"));
  EXPECT_THAT(keys(with_upstreams({std::string(65, 'a').c_str()}).validate()),
              ElementsAre("upstream[0].name"));
}

TEST(Config, ThereIsNoOverallTimeoutUnlessOneIsSet) {
  Config config = with_upstreams({"a"});
  EXPECT_EQ(config.upstreams[0].overall_timeout, Duration(0));
  EXPECT_FALSE(gateway::RouteConfig().overall_timeout.has_value());
  config.upstreams[0].overall_timeout = config.upstreams[0].first_byte_timeout;
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  config.upstreams[0].overall_timeout -= std::chrono::milliseconds(1);
  EXPECT_THAT(keys(config.validate()), ElementsAre("upstream[0].overall_timeout_ms"));
}

TEST(Config, LimitOverridesAreCheckedOverTheCommonLimit) {
  Config config = with_upstreams({"a"});
  config.upstreams[0].limit.initial_limit = 2000;
  EXPECT_THAT(keys(config.validate()), ElementsAre("upstream[0].initial_limit"))
      << "above the common max_limit";
  config.upstreams[0].limit.max_limit = 4000;
  EXPECT_THAT(keys(config.validate()), IsEmpty());
}

TEST(Config, TheActorTableHasRoomForTheWaitingRoomsOfManyUpstreams) {
  Config config;
  for (int i = 0; i < 400; ++i) config.upstreams.push_back(upstream("u" + std::to_string(i)));
  config.routes.resize(1);
  config.routes[0].upstream = "u0";
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  EXPECT_EQ(config.admission_for_scopes().validate(), ConfigErrors{});
  EXPECT_EQ(config.admission_for_scopes().actor_table_size,
            32768U + 2 * ((399 + config.reload.upstreams_spare) * 1024 + config.buffering.blocks()))
      << "and for the requests whose bodies are received first";
}

TEST(Config, ThePoolOfBodiesHoldsAtLeastOneAndRoutesCannotAskForMore) {
  Config config = with_upstreams({"app"});
  config.buffering.buffer_request_max = 100'000;
  EXPECT_EQ(config.buffering.block_bytes(), 28'672U) << "a quarter, in whole pages";
  config.buffering.buffer_request_pool = 4 * 28'672 - 1;
  EXPECT_THAT(keys(config.validate()), ElementsAre("server.buffer_request_pool"));
  ++config.buffering.buffer_request_pool;
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  EXPECT_EQ(config.buffering.blocks(), 4U);
  config.routes.resize(1);
  config.routes[0].upstream = "app";
  config.routes[0].buffer_request_max = 100'001;
  EXPECT_THAT(keys(config.validate()), ElementsAre("route[0].buffer_request_max"));
  config.routes[0].buffer_request_max = 0;
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  config.buffering.buffer_request_max = 0;
  EXPECT_EQ(config.buffering.blocks(), 0U);
  EXPECT_THAT(keys(config.validate()), IsEmpty());
}

TEST(Config, TheActorTableIsTwiceWhatCanBeInFlight) {
  Config config = with_upstreams({"a"});
  config.admission.actor_table_size = 2 * (1024 + 4096 + 1024) - 1;
  EXPECT_THAT(keys(config.validate()), ElementsAre("actors.actor_table_size"));
  ++config.admission.actor_table_size;
  EXPECT_THAT(keys(config.validate()), IsEmpty());
}

TEST(Config, RoutesSayWhatIsWrongWithThem) {
  Config config = with_upstreams({"app"});
  gateway::RouteConfig good;
  good.upstream = "app";
  const auto faults = [&](auto change) {
    gateway::RouteConfig route = good;
    change(route);
    config.routes = {route};
    return keys(config.validate());
  };
  EXPECT_THAT(faults([](gateway::RouteConfig&) {}), IsEmpty());
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.host = "*"; }), ElementsAre("route[0].host"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.host = "a/b"; }),
              ElementsAre("route[0].host"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.host = "*.example.com"; }), IsEmpty());
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.path = "x"; }), ElementsAre("route[0].path"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.path_prefix = "x"; }),
              ElementsAre("route[0].path_prefix"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.path = r.path_prefix = "/x"; }),
              ElementsAre("route[0].path_prefix"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) {
                r.methods = {"GET", "P OST"};
              }),
              ElementsAre("route[0].methods"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.upstream = "ap"; }),
              ElementsAre("route[0].upstream"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.cost = 0; }), ElementsAre("route[0].cost"));
  EXPECT_THAT(
      faults([](gateway::RouteConfig& r) { r.bytes_estimate = gateway::kBytesEstimateMax + 1; }),
      ElementsAre("route[0].bytes_estimate"));
  EXPECT_THAT(faults([](gateway::RouteConfig& r) { r.overall_timeout = std::chrono::hours(25); }),
              ElementsAre("route[0].overall_timeout_ms"));
}

TEST(Config, AnUpstreamThatSpeaksOnlyHttp2CannotSwitchProtocols) {
  Config config = with_upstreams({"app"});
  gateway::RouteConfig route;
  route.upstream = "app";
  config.upstreams[0].protocol = upstream::Protocol::kHttp2;
  config.routes = {route};
  EXPECT_THAT(config.validate(), IsEmpty()) << "left out: whatever the upstream can";
  config.routes[0].upgrade.emplace();
  EXPECT_THAT(config.validate(), IsEmpty());
  config.routes[0].upgrade->push_back(gateway::UpgradeProtocol::kWebSocket);
  EXPECT_THAT(keys(config.validate()), ElementsAre("route[0].upgrade"));
  config.upstreams[0].protocol = upstream::Protocol::kAuto;
  EXPECT_THAT(config.validate(), IsEmpty());
}

TEST(Config, WarnsOfWhatIsAllowedButUnwise) {
  Config config = with_upstreams({"a", "b"});
  config.admin.listen = *parse_net_address(":9901");
  config.trust.peers = {*parse_ip_range("0.0.0.0/0")};
  config.trust.proxies = {*parse_ip_range("::/0")};
  config.routes.resize(2);
  config.routes[0].upstream = config.routes[1].upstream = "a";
  config.server.tcp_write_buffer_pool_size = 100;
  EXPECT_THAT(keys(config.validate()), IsEmpty());
  EXPECT_THAT(keys(config.warnings()),
              testing::UnorderedElementsAre("server.tcp_write_buffer_pool_size", "admin.listen",
                                            "trust.peers", "trust.proxies", "route[1]",
                                            "upstream[1].name"));
}

TEST(WeirConfig, ActionsOverASocketNeedItsPathAndNoOtherUnixSocket) {
  Config config;
  config.admin.actions = gateway::ActionsMode::kSocket;
  EXPECT_THAT(keys(config.validate()), ElementsAre("admin.actions_socket"));
  config.admin.actions_socket = "relative";
  EXPECT_THAT(keys(config.validate()), ElementsAre("admin.actions_socket"));
  config.admin.actions_socket = "/run/a.sock";
  EXPECT_EQ(config.validate(), ConfigErrors{});
  config.admin.listen = *parse_net_address("unix:/run/b.sock");
  EXPECT_THAT(keys(config.validate()), ElementsAre("admin.listen"));
}

TEST(WeirConfig, ActionsWithATokenNeedAFileAndALoopbackAddress) {
  Config config;
  config.admin.actions = gateway::ActionsMode::kToken;
  EXPECT_THAT(keys(config.validate()), ElementsAre("admin.token_file"));
  config.admin.token_file = "/etc/weir/token";
  EXPECT_EQ(config.validate(), ConfigErrors{});
  for (const char* address : {":9901", "10.0.0.1:9901", "[2001:db8::1]:9901"}) {
    config.admin.listen = *parse_net_address(address);
    const ConfigErrors errors = config.validate();
    ASSERT_THAT(keys(errors), ElementsAre("admin.actions")) << address;
    EXPECT_THAT(errors[0].allowed, testing::HasSubstr("no TLS"));
  }
  for (const char* address : {"[::1]:9901", "127.0.0.2:9901", "unix:/run/weir.sock"}) {
    config.admin.listen = *parse_net_address(address);
    EXPECT_EQ(config.validate(), ConfigErrors{}) << address;
  }
  config.admin.listen.reset();
  EXPECT_THAT(keys(config.validate()), ElementsAre("admin.listen"));
}

}  // namespace
}  // namespace weir::config
