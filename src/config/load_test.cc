#include "weir/experimental/config/load.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/net_address.h"

namespace weir::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> texts(const ConfigErrors& errors) {
  std::vector<std::string> out;
  for (const ConfigError& error : errors) out.push_back(to_text(error));
  return out;
}

std::vector<std::string> errors_of(std::string_view toml, const Environment& environment = {}) {
  return texts(load_config(toml, "weir.toml", environment).errors);
}

TEST(LoadConfig, AnEmptyFileGivesTheDefaults) {
  const LoadedConfig loaded = load_config("", "weir.toml");
  EXPECT_THAT(texts(loaded.errors), IsEmpty());
  EXPECT_EQ(loaded.config, Config());
}

constexpr std::string_view kEveryKindOfValue = R"(
[listen]
addresses = [":80", "unix:/run/weir.sock"]
[admin]
listen = ""
access_log = "sampled"
access_log_sample = 0.5
[server]
drain_bytes_max = "1MiB"
allow_half_close = true
[admission]
max_concurrent = 100
high_wait_max_ms = "1s"
normal_wait_max_ms = 20
mode_memory = "shadow"
[admission.limit]
policy = "vegas"
max_limit = 90
initial_limit = 50
[trust]
peers = ["10.0.0.0/8", "::1"]
[actors]
identity = ["api_key", "address"]
[[upstream]]
name = "a"
endpoints = ["127.0.0.1:3000", "backend.example:80"]
first_byte_timeout_ms = "5s"
initial_limit = 10
[[upstream]]
name = "b"
endpoints = ["unix:/run/b.sock"]
[[route]]
host = "*.example.com"
path_prefix = "/api"
methods = ["GET"]
upstream = "a"
priority = "high"
max_body = "10MB"
[[route]]
upstream = "b")";

TEST(LoadConfig, ReadsEveryKindOfValue) {
  const LoadedConfig loaded = load_config(kEveryKindOfValue, "weir.toml");
  ASSERT_THAT(texts(loaded.errors), IsEmpty());
  const Config& c = loaded.config;
  EXPECT_THAT(c.server.listen, ElementsAre(":80", "unix:/run/weir.sock"));
  EXPECT_FALSE(c.admin.listen.has_value());
  EXPECT_EQ(c.admin.access_log, gateway::AccessLog::kSampled);
  EXPECT_EQ(c.admin.access_log_sample, 0.5);
  EXPECT_EQ(c.server.drain_bytes_max, 1U << 20U);
  EXPECT_TRUE(c.server.allow_half_close);
  EXPECT_EQ(c.admission.max_concurrent, 100U);
  EXPECT_EQ(c.admission.high_wait_max, Duration(std::chrono::seconds(1)));
  EXPECT_EQ(c.admission.normal_wait_max, Duration(std::chrono::milliseconds(20)));
  EXPECT_EQ(c.admission.modes.memory, RuleMode::kShadow);
  EXPECT_EQ(c.admission.limit.policy, LimitKind::kVegas);
  EXPECT_THAT(c.trust.peers, ElementsAre(*parse_ip_range("10.0.0.0/8"), *parse_ip_range("::1")));
  using enum gateway::IdentityKind;
  EXPECT_THAT(c.actors.identity, ElementsAre(kApiKey, kAddress));
  ASSERT_EQ(c.upstreams.size(), 2U);
  EXPECT_EQ(c.upstreams[0].endpoints[1], *upstream::parse_source("backend.example:80"));
  EXPECT_EQ(c.upstreams[0].first_byte_timeout, Duration(std::chrono::seconds(5)));
  EXPECT_EQ(c.upstreams[0].limit.over(c.admission.limit).initial_limit, 10U);
  EXPECT_EQ(c.upstreams[0].limit.over(c.admission.limit).max_limit, 90U);
  EXPECT_EQ(c.upstreams[1].limit, upstream::LimitOverrides());
  ASSERT_EQ(c.routes.size(), 2U);
  EXPECT_EQ(c.routes[0].priority, Priority::kHigh);
  EXPECT_EQ(c.routes[0].max_body, 10'000'000U);
  EXPECT_EQ(c.routes[1].priority, std::nullopt);
  EXPECT_EQ(c.admission_for_scopes().scopes_max, 2U + c.reload.upstreams_spare);
}

TEST(LoadConfig, ReportsAllFaultsAtOnceEachWithItsLine) {
  EXPECT_THAT(
      errors_of(R"([admission]
max_concurent = 5
max_concurrent = 0
high_wait_max_ms = "soon"
[admision]
x = 1
[actors]
bytes_max = true
[[upstream]]
name = "app"
endpoints = ["127.0.0.1"]
[[route]]
upstream = "ap"
)"),
      UnorderedElementsAre(
          "weir.toml:2: admission.max_concurent = 5: must be a known key; did you mean "
          "max_concurrent?",
          "weir.toml:3: admission.max_concurrent = 0: must be 1 to 16383",
          "weir.toml:4: admission.high_wait_max_ms = \"soon\": must be a time like \"500ms\" "
          "or a number of milliseconds, 0s to 1m",
          "weir.toml:5: admision = [admision]: must be a known section; did you mean "
          "admission?",
          "weir.toml:8: actors.bytes_max = true: must be a size like \"4GiB\" or a number "
          "of bytes, 1B to 4TiB - 1",
          "weir.toml:11: upstream[0].endpoints = [\"127.0.0.1\"]: must be a list of "
          "host:port, unix:/path, dns:name:port, srv:_service._proto.name or file:/path, and "
          "behind it weight=N, zone=Z, drain=true, which \"127.0.0.1\" is not: it has no port",
          "weir.toml:13: route[0].upstream = \"ap\": must be the name of an [[upstream]]; "
          "did you mean app?"));
}

TEST(LoadConfig, ASyntaxErrorNamesFileAndLine) {
  const auto errors = errors_of("[admission]\nmax_concurrent = \n");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(errors[0], HasSubstr("weir.toml:2: "));
  EXPECT_THAT(errors[0], HasSubstr("must be TOML"));
}

TEST(LoadConfig, FaultsBetweenOptionsCarryTheLineOfTheOptionTheyName) {
  EXPECT_THAT(
      errors_of("[memory]\n\nmemory_critical_threshold = 0.5\n"),
      ElementsAre("weir.toml:3: memory.memory_critical_threshold = 0.5: must be 0.85 to 1"));
  EXPECT_THAT(errors_of("[admission.limit]\nvegas_alpha = 9\n"),
              ElementsAre("weir.toml:1: admission.limit.vegas_beta = 8: must be 9 to 16383"))
      << "the named option is not in the file: its section's line";
}

TEST(LoadConfig, UnknownSectionsAreErrorsEvenWhenEmpty) {
  EXPECT_THAT(errors_of("[sever]\n"),
              ElementsAre("weir.toml:1: sever = [sever]: must be a known section; did you mean "
                          "server?"));
  EXPECT_THAT(errors_of("[quite_different]\nx = 1\n"),
              ElementsAre("weir.toml:1: quite_different = [quite_different]: must be a known "
                          "section"));
  EXPECT_THAT(errors_of("[admission.limits]\n"),
              ElementsAre("weir.toml:1: admission.limits = [admission.limits]: must be a known "
                          "section; did you mean admission.limit?"));
  EXPECT_THAT(errors_of("[a]\n[a.b]\nx = 1\n[a.b.c]\n"), testing::SizeIs(1))
      << "what is below an unknown section is not worth a second message";
}

TEST(LoadConfig, AKeyInTheWrongSectionIsToldWhereItBelongs) {
  EXPECT_THAT(errors_of("[admission]\ninflight_max = 3\n"),
              ElementsAre("weir.toml:2: admission.inflight_max = 3: must be below [actors], where "
                          "that key belongs"));
  EXPECT_THAT(errors_of("max_concurrent = 3\n"),
              ElementsAre("weir.toml:1: max_concurrent = 3: must be below [admission]"));
  EXPECT_THAT(errors_of("nonsense = 3\n"),
              ElementsAre("weir.toml:1: nonsense = 3: must be below a [section]"));
}

TEST(LoadConfig, SingleAndDoubleBracketsAreNotMixed) {
  EXPECT_THAT(errors_of("[upstream]\nname = \"a\"\n"),
              ElementsAre("weir.toml:1: upstream = [upstream]: must be written [[upstream]]"));
  EXPECT_THAT(errors_of("[[admission]]\nmax_concurrent = 1\n[[admission]]\n"),
              ElementsAre("weir.toml:1: admission[0] = [[admission]]: must be written "
                          "[admission], once"));
  EXPECT_THAT(errors_of("upstream = 5\n"),
              ElementsAre("weir.toml:1: upstream = 5: must be written [[upstream]]"));
}

TEST(LoadConfig, UpstreamsAndRoutesAreCheckedAgainstEachOther) {
  EXPECT_THAT(errors_of("[[upstream]]\n"),
              UnorderedElementsAre(HasSubstr("weir.toml:1: upstream[0].name"),
                                   HasSubstr("weir.toml:1: upstream[0].endpoints")));
  const std::string two =
      "[[upstream]]\nname = \"a\"\nendpoints = [\"127.0.0.1:1\"]\n"
      "[[upstream]]\nname = \"a\"\nendpoints = [\"127.0.0.1:0\"]\n";
  EXPECT_THAT(errors_of(two),
              UnorderedElementsAre(
                  "weir.toml:5: upstream[1].name = \"a\": must be a name of its own",
                  HasSubstr("weir.toml:6: upstream[1].endpoints = [\"127.0.0.1:0\"]: must be"),
                  "weir.toml: route = none: must be written when there are several upstreams: "
                  "[[route]] path_prefix = \"/some\" upstream = \"a\", and so on; one without a "
                  "path takes the rest"));
}

TEST(LoadConfig, AnUpstreamHasTablesOfItsOwn) {
  const LoadedConfig loaded = load_config(R"(
[[upstream]]
name = "a"
endpoints = ["127.0.0.1:81 weight=2 zone=b drain=true", "dns:api:8080", "file:/etc/weir/api"]
protocol = "http2"
balance = "hash"
hash_by = "header:X-Tenant"
[upstream.tls]
enabled = true
ca = "/etc/ca.pem"
min_version = "1.3"
[upstream.health]
kind = "http"
path = "/up"
[[upstream]]
name = "b"
endpoints = ["srv:_http._tcp.api"]
tls = { enabled = true, insecure = true }
[[route]]
upstream = "a"
idempotent = true
[[route]]
upstream = "b"
path = "/b"
[dns]
servers = ["192.0.2.1:53"]
)",
                                          "weir.toml");
  ASSERT_THAT(texts(loaded.errors), IsEmpty());
  const upstream::UpstreamConfig& a = loaded.config.upstreams[0];
  EXPECT_EQ(a.endpoints[0].attributes,
            (upstream::EndpointAttributes{.weight = 2, .zone = "b", .draining = true}));
  EXPECT_EQ(a.endpoints[1].kind, upstream::SourceKind::kDns);
  EXPECT_EQ(a.endpoints[2].text, "/etc/weir/api");
  EXPECT_EQ(a.protocol, upstream::Protocol::kHttp2);
  EXPECT_EQ(a.balance, policy::Balance::kHash);
  EXPECT_EQ(a.hash_by, "header:X-Tenant");
  EXPECT_TRUE(a.tls_enabled);
  EXPECT_EQ(a.tls.ca, "/etc/ca.pem");
  EXPECT_EQ(a.tls.min_version, io::TlsVersion::k13);
  EXPECT_EQ(a.health.kind, upstream::HealthCheckKind::kHttp);
  EXPECT_EQ(a.health.path, "/up");
  const upstream::UpstreamConfig& b = loaded.config.upstreams[1];
  EXPECT_TRUE(b.tls_enabled && b.tls.insecure) << "an inline table is the same";
  EXPECT_EQ(b.health, upstream::HealthCheckConfig());
  EXPECT_TRUE(loaded.config.routes[0].idempotent);
  EXPECT_THAT(loaded.config.dns.servers, ElementsAre("192.0.2.1:53"));
  EXPECT_THAT(texts(loaded.warnings),
              ElementsAre(HasSubstr("weir.toml:18: upstream[1].tls.insecure = true: must be false "
                                    "outside of tests")));
}

TEST(LoadConfig, FaultsInTablesOfAnUpstreamNameItsKeyAndLine) {
  const std::string upstream = "[[upstream]]\nname = \"a\"\nendpoints = [\"h:1\"]\n";
  EXPECT_THAT(
      errors_of(upstream + "[upstream.tls]\nenabled = true\ninsecur = true\nmin_version = 1.2\n"),
      ElementsAre("weir.toml:6: upstream[0].tls.insecur = true: must be a known key; did you mean "
                  "insecure?",
                  "weir.toml:7: upstream[0].tls.min_version = 1.2: must be one of 1.2, 1.3"));
  EXPECT_THAT(errors_of(upstream + "[upstream.tls]\nca = \"/ca.pem\"\n"),
              ElementsAre(HasSubstr("weir.toml:4: upstream[0].tls.enabled = false: must be true "
                                    "when other keys of [upstream.tls] are set")));
  EXPECT_THAT(
      errors_of(upstream + "[upstream.health]\nkind = \"ping\"\ninterval_ms = 1\n"),
      ElementsAre(
          "weir.toml:5: upstream[0].health.kind = \"ping\": must be one of off, http, tcp, grpc",
          "weir.toml:6: upstream[0].health.interval_ms = 1: must be 10ms to 1h"));
  EXPECT_THAT(errors_of(upstream + "[upstream.tsl]\n"),
              ElementsAre("weir.toml:4: upstream[0].tsl = [upstream.tsl]: must be a known section; "
                          "did you mean upstream.tls?"));
  EXPECT_THAT(errors_of(upstream + "[[upstream.tls]]\nenabled = true\n"),
              ElementsAre("weir.toml:4: upstream[0].tls = [[upstream.tls]]: must be written "
                          "[upstream.tls], once"));
  EXPECT_THAT(errors_of("[upstream.tls]\nenabled = true\n"),
              ElementsAre("weir.toml:1: upstream = [upstream]: must be written [[upstream]]"));
}

TEST(LoadConfig, GrpcNeedsAnUpstreamThatCanSpeakHttp2) {
  const auto errors = [](const std::string& how) {
    return errors_of("[[upstream]]\nname = \"a\"\nendpoints = [\"h:1\"]\n" + how +
                     "[upstream.health]\nkind = \"grpc\"\n"
                     "[[route]]\nupstream = \"a\"\ngrpc = \"pkg.S\"\n");
  };
  for (const char* http1 : {"", "protocol = \"http1\"\n"}) {
    EXPECT_THAT(errors(http1),
                testing::UnorderedElementsAre(HasSubstr("upstream[0].health.kind = grpc: must be "
                                                        "used with protocol = \"http2\""),
                                              HasSubstr("route[0].grpc = \"pkg.S\": must be led to "
                                                        "an upstream that speaks HTTP/2")));
  }
  EXPECT_THAT(errors("protocol = \"http2\"\n"), IsEmpty());
  EXPECT_THAT(errors("tls = { enabled = true }\n"), IsEmpty());
  EXPECT_THAT(errors_of("[[upstream]]\nname = \"a\"\nendpoints = [\"h:1\"]\nprotocol = \"http2\"\n"
                        "[upstream.health]\nkind = \"grpc\"\nservice = \"" +
                        std::string(128, 's') + "\"\n"),
              ElementsAre(HasSubstr("upstream[0].health.service = 128 characters: must be at most "
                                    "127 characters")));
}

TEST(LoadConfig, ASourceThatCannotBeReadIsNamedWithTheReason) {
  const auto error = [](const std::string& text) {
    const auto errors = errors_of("[[upstream]]\nname = \"a\"\nendpoints = [\"" + text + "\"]\n");
    return errors.size() == 1 ? errors[0] : "not one error";
  };
  EXPECT_THAT(error("dns:127.0.0.1:80"), HasSubstr("after dns: comes a host name"));
  EXPECT_THAT(error("srv:api"), HasSubstr("_service._proto.name"));
  EXPECT_THAT(error("file:api"), HasSubstr("does not start with /"));
  EXPECT_THAT(error("h:1 weight=0"), HasSubstr("weight=0: allowed is 1 to 65535"));
  EXPECT_THAT(error("h:1 drain"), HasSubstr("allowed are weight=N, zone=Z and drain=true"));
  EXPECT_THAT(error("file:/a weight=2"), HasSubstr("in the file itself"));
  EXPECT_THAT(error("srv:_h._tcp.a weight=2"), HasSubstr("weights of their own"));
  EXPECT_THAT(error("h:1\", \"h:1 weight=2"), HasSubstr("must be listed once"));
}

TEST(LoadConfig, TheEnvironmentOverridesTheFile) {
  const LoadedConfig loaded = load_config("[admission]\nmax_concurrent = 5\n", "weir.toml",
                                          {{"WEIR_ADMISSION_MAX_CONCURRENT", "2000"},
                                           {"WEIR_ADMISSION_LIMIT_POLICY", "aimd"},
                                           {"WEIR_MEMORY_PRESSURE_THRESHOLD", "0.7"},
                                           {"WEIR_LISTEN_ADDRESSES", "127.0.0.1:1, [::1]:2"},
                                           {"WEIR_SERVER_ALLOW_HALF_CLOSE", "true"},
                                           {"WEIR_PER_ACTOR_INFLIGHT_MAX", "3"},
                                           {"WEIR_PER_ACTOR_BYTES_MAX", "1GiB"}});
  EXPECT_THAT(texts(loaded.errors), IsEmpty());
  EXPECT_EQ(loaded.config.admission.max_concurrent, 2000U);
  EXPECT_EQ(loaded.config.admission.limit.policy, LimitKind::kAimd);
  EXPECT_EQ(loaded.config.admission.memory.memory_pressure_threshold, 0.7);
  EXPECT_THAT(loaded.config.server.listen, ElementsAre("127.0.0.1:1", "[::1]:2"));
  EXPECT_TRUE(loaded.config.server.allow_half_close);
  EXPECT_EQ(loaded.config.admission.inflight_max, 3U);
  EXPECT_EQ(loaded.config.admission.bytes_max, std::uint64_t{1} << 30U);
}

TEST(LoadConfig, AFaultInTheEnvironmentNamesTheVariable) {
  EXPECT_THAT(
      errors_of("", {{"WEIR_ADMISSION_MAX_CONCURRENT", "many"}}),
      ElementsAre("environment variable WEIR_ADMISSION_MAX_CONCURRENT: "
                  "admission.max_concurrent = \"many\": must be a whole number, 1 to 16383"));
  EXPECT_THAT(errors_of("[memory]\nmemory_pressure_threshold = 0.5\n",
                        {{"WEIR_MEMORY_CRITICAL_THRESHOLD", "0.3"}}),
              ElementsAre(HasSubstr("environment variable WEIR_MEMORY_CRITICAL_THRESHOLD: ")));
}

TEST(LoadConfig, AMisspeltVariableIsAWarning) {
  const LoadedConfig loaded =
      load_config("", "weir.toml",
                  {{"WEIR_ADMISSION_MAX_CONCURENT", "5"}, {"WEIR_SOMETHING_ELSE_ALTOGETHER", "1"}});
  EXPECT_TRUE(loaded.ok());
  const auto warnings = texts(loaded.unknown_variables);
  EXPECT_EQ(std::count_if(warnings.begin(), warnings.end(),
                          [](const std::string& text) {
                            return text.find("did you mean WEIR_ADMISSION_MAX_CONCURRENT?") !=
                                   std::string::npos;
                          }),
            1);
  EXPECT_THAT(warnings, testing::Not(testing::Contains(HasSubstr("SOMETHING_ELSE"))));
}

TEST(LoadConfig, ReadsTheProcessEnvironment) {
  ASSERT_EQ(setenv("WEIR_ADMISSION_WAITING_MAX", "17", 1), 0);
  const LoadedConfig loaded = load_config("", "weir.toml", process_environment());
  ASSERT_EQ(unsetenv("WEIR_ADMISSION_WAITING_MAX"), 0);
  EXPECT_EQ(loaded.config.admission.waiting_max, 17U);
}

TEST(LoadConfig, AFileThatCannotBeReadIsOneError) {
  const LoadedConfig loaded = load_config_file("/no/such/weir.toml");
  EXPECT_THAT(texts(loaded.errors),
              ElementsAre("/no/such/weir.toml: no such file or directory: must be a readable "
                          "file of at most 4 MiB"));
  EXPECT_FALSE(load_config_file("/").ok()) << "a directory";
}

TEST(LoadConfig, AFileLargerThanItsBoundIsRefused) {
  const std::string path = testing::TempDir() + "/weir_too_large.toml";
  std::ofstream(path) << "#" << std::string(5U << 20U, 'x');
  EXPECT_THAT(texts(load_config_file(path).errors),
              ElementsAre(HasSubstr("file too large: must be")));
}

struct NodeNumbers {
  const char* file;
  std::uint32_t global, high, normal, low, queue;
};

TEST(ExampleConfig, NodesHaveTheirNumbers) {
  const std::vector<NodeNumbers> table = {{"gate", 2000, 1000, 600, 400, 1000},
                                          {"manager", 5000, 2500, 1500, 1000, 500},
                                          {"worker", 500, 250, 150, 100, 250}};
  for (const NodeNumbers& node : table) {
    const LoadedConfig loaded =
        load_config_file(std::string(WEIR_EXAMPLES_DIR "/") + node.file + ".toml");
    ASSERT_THAT(texts(loaded.errors), IsEmpty()) << node.file;
    EXPECT_THAT(texts(loaded.warnings), IsEmpty()) << node.file;
    const AdmissionConfig& admission = loaded.config.admission;
    EXPECT_EQ(admission.max_concurrent, node.global);
    EXPECT_EQ(admission.limit.initial_limit, node.global);
    EXPECT_EQ(admission.limit.policy, LimitKind::kFixed);
    EXPECT_THAT(admission.classes.caps, ElementsAre(0U, node.high, node.normal, node.low));
    EXPECT_EQ(admission.warn_threshold, 0.8);
  }
}

TEST(ExampleConfig, UpstreamsHaveSourcesAndTables) {
  const LoadedConfig loaded = load_config_file(WEIR_EXAMPLES_DIR "/upstreams.toml");
  ASSERT_THAT(texts(loaded.errors), IsEmpty());
  EXPECT_THAT(texts(loaded.warnings), IsEmpty());
  ASSERT_EQ(loaded.config.upstreams.size(), 2U);
  EXPECT_TRUE(loaded.config.upstreams[0].tls_enabled);
  EXPECT_TRUE(loaded.config.routes[0].idempotent);
}

TEST(ExampleConfig, MinimalNeedsOnlyAnUpstream) {
  const LoadedConfig loaded = load_config_file(WEIR_EXAMPLES_DIR "/minimal.toml");
  ASSERT_THAT(texts(loaded.errors), IsEmpty());
  EXPECT_THAT(texts(loaded.warnings), IsEmpty());
  Config expected;
  expected.upstreams.resize(1);
  expected.upstreams[0].name = "app";
  expected.upstreams[0].endpoints = {*upstream::parse_source("127.0.0.1:3000")};
  EXPECT_EQ(loaded.config, expected);
}

}  // namespace
}  // namespace weir::config
