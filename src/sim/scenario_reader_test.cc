#include "scenario_reader.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ConfigErrors errors_of(const std::string& text, const std::vector<std::string>& set = {},
                       const std::string& trace = "") {
  const FileSource files = [&trace](const std::string&) {
    return trace.empty() ? std::optional<std::string>() : trace;
  };
  const auto scenario = read_scenario_text(text, "bad.toml", set, files);
  return scenario ? ConfigErrors{} : scenario.error();
}

std::string with(const std::string& more) {
  return std::string(kPlain) + more;
}

const char* const kWhole = R"(
name = "all of it"
story = "once"
seed = 5
duration = "90s"
drain = "3s"
settle = "2s"
bucket = "500ms"
stationary = true
[[service]]
name = "front"
workers = 4
time = "5ms"
contention = 0.01
holds_worker = false
queue_max = 100
timeout = "2s"
[[service.call]]
to = "back"
timeout = "300ms"
retry = { kind = "backoff", attempts = 2, base = "10ms", wait_max = "1s", jitter = 0.2 }
[[service.fault]]
at = "10s"
kind = "slow"
factor = 3
lasts = "5s"
[service.memory]
used = [ { at = "0s", used = 0.4 }, { at = "30s", used = 0.9 } ]
per_request = 0.001
restart = "7s"
[service.admission]
max_concurrent = 512
mode_actor = "shadow"
[service.admission.limit]
policy = "vegas"
initial_limit = 64
[service.admission.priority]
low_limit = 20
share_low_permille = 600
[service.admission.memory]
low_priority_shed_ratio = 0.5
[[service]]
name = "back"
workers = 9
time = { kind = "bimodal", fast = "1ms", slow = "10ms", slow_share = 0.1 }
[[load]]
name = "web"
to = "front"
class = "high"
arrivals = "constant"
rate = [ { at = "0s", rate = 10 }, { at = "5s", rate = 20 } ]
shape = "ramps"
actors = 3
bytes = "2MiB"
cost = 4
link = { delay = "2ms", loss = 0.01 }
timeout = "1s"
cancels = false
sends_deadline = true
[[load]]
name = "robots"
to = "back"
arrivals = "closed"
clients = 50
think = { kind = "exponential", mean = "1s" }
[[verdict]]
name = "fast"
measure = "latency_p99"
class = "high"
load = "web"
from = "5s"
to = "60s"
max = "80ms"
)";

TEST(ScenarioReader, ReadsAWholeScenario) {
  const Scenario s = scenario_of(kWhole);
  EXPECT_EQ(s.name, "all of it");
  EXPECT_EQ(s.bucket_width(), Duration(milliseconds(500)));
  ASSERT_EQ(s.services.size(), 2U);
  const ServiceSpec& front = s.services[0];
  EXPECT_FALSE(front.holds_worker);
  EXPECT_EQ(front.calls[0].to, 1U);
  EXPECT_EQ(front.calls[0].caller.retry.attempts_max, 2U);
  EXPECT_EQ(front.faults[0].kind, FaultKind::kSlow);
  EXPECT_DOUBLE_EQ(front.memory->used[1].value, 0.9);
  EXPECT_EQ(front.admission->limit.policy, LimitKind::kVegas);
  EXPECT_EQ(front.admission->classes.caps[3], 20U);
  EXPECT_DOUBLE_EQ(front.admission->memory.low_priority_shed_ratio, 0.5);
  EXPECT_EQ(front.admission->modes.actor, RuleMode::kShadow);
  EXPECT_FALSE(s.services[1].admission.has_value());
  EXPECT_EQ(s.loads[0].bytes, 2U << 20U);
  EXPECT_EQ(s.loads[0].shape, RateShape::kRamps);
  EXPECT_FALSE(s.loads[0].caller.cancels);
  EXPECT_EQ(s.loads[1].clients, 50U);
  EXPECT_EQ(s.verdicts[0].load, 0U);
  EXPECT_DOUBLE_EQ(*s.verdicts[0].max, 80);
}

TEST(ScenarioReader, FaultsCarryFileLineKeyAndAllowedValues) {
  const ConfigErrors errors = errors_of(with("[[verdict]]\nmeasure = \"speed\"\nmin = 1\n"));
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].file, "bad.toml");
  EXPECT_EQ(errors[0].line, 14);
  EXPECT_EQ(errors[0].key, "verdict.0.measure");
  EXPECT_NE(errors[0].allowed.find("goodput"), std::string::npos);
  EXPECT_EQ(printed(errors).rfind("bad.toml:14: verdict.0.measure = \"speed\"; allowed: one of", 0),
            0U);
}

TEST(ScenarioReader, BadInputIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[[load]]\nname = \"x\"\nto = \"nowhere\"\nrate = 1\n", "load.x.to"},
      {"[[load]]\nname = \"web\"\nto = \"api\"\nrate = 1\n", "load"},
      {"[[load]]\nname = \"x\"\nto = \"api\"\n", "load.x.rate"},
      {"[[load]]\nname = \"x\"\nto = \"api\"\narrivals = \"bursts\"\n", "load.x.every"},
      {"[[load]]\nname = \"x\"\nto = \"api\"\nrate = 1\nlink = { loss = 0.5 }\n", "load.x.timeout"},
      {"[[load]]\nname = \"x\"\nto = \"api\"\nrate = 1\nsends_deadline = true\n",
       "load.x.sends_deadline"},
      {"[[load]]\nname = \"x\"\nto = \"api\"\nrate = 1\nclass = \"vip\"\n", "load.x.class"},
      {"[[service]]\nname = \"b\"\nworkers = 0\ntime = \"1ms\"\n", "service.b.workers"},
      {"[[service]]\nname = \"b\"\nworkers = 1\ntime = { kind = \"uniform\", min = \"2ms\", "
       "max = \"1ms\" }\n",
       "service.b.time.max"},
      {"[[service]]\nname = \"b\"\nworkers = 1\ntime = { kind = \"empirical\", p50 = \"2ms\" }\n",
       "service.b.time.min"},
      {"[[service]]\nname = \"b\"\nworkers = 1\ntime = \"1ms\"\n[[service.fault]]\nkind = "
       "\"crash\"\nat = \"1s\"\n",
       "service.b.fault.0.lasts"},
      {"[[service]]\nname = \"b\"\nworkers = 1\ntime = \"1ms\"\n[[service.call]]\nto = \"b\"\n",
       "service"},
      {"[[verdict]]\nmeasure = \"goodput\"\n", "verdict.0.min"},
      {"[[verdict]]\nmeasure = \"latency_p99\"\nmax = 30\n", "verdict.0.max"},
      {"[[verdict]]\nmeasure = \"goodput\"\nfrom = \"30s\"\nmin = 1\n", "verdict.0.from"},
      {"[[verdict]]\nmeasure = \"recovery_time\"\nlevel = 5\nmax = \"1s\"\n", "verdict.0.after"},
  };
  for (const auto& [text, key] : cases) {
    const ConfigErrors errors = errors_of(with(text));
    ASSERT_FALSE(errors.empty()) << text;
    EXPECT_EQ(errors[0].key, key) << text << printed(errors);
  }
}

TEST(ScenarioReader, AdmissionIsValidatedByItsOwnRules) {
  const ConfigErrors errors = errors_of(kPlain, {"service.api.admission.limit.initial_limit=4000"});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].key.find("initial_limit"), std::string::npos);
}

TEST(ScenarioReader, AServiceMayTakeItsAdmissionFromAGatewaysConfiguration) {
  const FileSource files = [](const std::string& path) {
    EXPECT_EQ(path, "weir.toml");
    return std::optional<std::string>(
        "[admission]\nmax_concurrent = 77\n[admission.limit]\npolicy = \"vegas\"\n"
        "initial_limit = 55\n[actors]\ninflight_max = 5\n");
  };
  const std::vector<std::string> set = {"service.api.config=weir.toml",
                                        "service.api.admission.limit.initial_limit=44"};
  const auto s = read_scenario_text(kPlain, "f", set, files);
  ASSERT_TRUE(s.has_value()) << printed(s.error());
  const AdmissionConfig& admission = *s.value().services[0].admission;
  EXPECT_EQ(admission.max_concurrent, 77U);
  EXPECT_EQ(admission.inflight_max, 5U);
  EXPECT_EQ(admission.limit.policy, LimitKind::kVegas);
  EXPECT_EQ(admission.limit.initial_limit, 44U);  // the scenario's own values override the file
}

TEST(ScenarioReader, AGatewaysConfigurationThatIsWrongIsNamed) {
  const FileSource files = [](const std::string&) {
    return std::optional<std::string>("[admission]\nmax_concurrent = 0\n");
  };
  const auto s =
      read_scenario_text(kPlain, "f", std::vector<std::string>{"service.api.config=w"}, files);
  ASSERT_FALSE(s.has_value());
  EXPECT_EQ(s.error()[0].key, "service.api.config");
  EXPECT_NE(s.error()[0].value.find("max_concurrent"), std::string::npos);
  EXPECT_FALSE(errors_of(kPlain, {"service.api.config=nowhere.toml"}).empty());
}

TEST(ScenarioReader, OptionsOfAdmissionAreThoseOfTheGateway) {
  const ConfigErrors errors = errors_of(
      kPlain, {"service.api.admission.max_concurrent=99999", "service.api.admission.listen=x"});
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_NE(errors[0].allowed.find("1 to 16383"), std::string::npos);
  EXPECT_NE(errors[1].allowed.find("per_peer_limit"), std::string::npos);
}

TEST(ScenarioReader, AFaultInsideASetTableIsBlamedOnTheCommandLineToo) {
  const ConfigErrors errors = errors_of(kPlain, {"load.web.retry={kind=\"sometimes\"}"});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "load.web.retry.kind");
  EXPECT_EQ(errors[0].file, "--set");
}

TEST(ScenarioReader, AnUnknownKindOfDistributionIsOneFault) {
  const ConfigErrors errors =
      errors_of(kPlain, {"service.api.time={kind=\"expo\", mean=\"10ms\"}"});
  ASSERT_EQ(errors.size(), 1U) << printed(errors);
  EXPECT_NE(errors[0].allowed.find("exponential"), std::string::npos);
}

TEST(ScenarioReader, ARateThatIsNoneSaysWhatOneIs) {
  const ConfigErrors errors = errors_of(kPlain, {"load.web.rate=fast"});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].allowed, "a number, or a list of { at, rate }");
}

TEST(ScenarioReader, SettingAValueIsBlamedOnTheCommandLine) {
  const ConfigErrors errors = errors_of(kPlain, {"load.web.rate=fast"});
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].file, "--set");
  EXPECT_EQ(errors[0].key, "load.web.rate");
}

TEST(ScenarioReader, ReadsATrace) {
  const FileSource files = [](const std::string& path) {
    EXPECT_EQ(path, "day.csv");
    return std::optional<std::string>(
        "time,class,actor,bytes,cost\n0.5,high,ann,100,2\n# a comment\n1.25,low,bob,,\n1.25,,,,\n");
  };
  const auto s = read_scenario_text(
      with("[[load]]\nname = \"t\"\nto = \"api\"\narrivals = \"trace\"\nfile = \"day.csv\"\n"), "f",
      {}, files);
  ASSERT_TRUE(s.has_value()) << printed(s.error());
  const auto& trace = s.value().loads[1].trace;
  ASSERT_EQ(trace.size(), 3U);
  EXPECT_EQ(trace[0].at, Duration(milliseconds(500)));
  EXPECT_EQ(trace[0].priority, Priority::kHigh);
  EXPECT_EQ(trace[0].cost, 2U);
  EXPECT_EQ(trace[1].actor, 2U);
  EXPECT_EQ(trace[2].actor, 0U);
  EXPECT_EQ(trace[2].priority, Priority::kNormal);
  EXPECT_EQ(s.value().loads[1].actors, 2U);
}

TEST(ScenarioReader, ATraceThatIsWrongNamesItsLine) {
  const std::string load =
      "[[load]]\nname = \"t\"\nto = \"api\"\narrivals = \"trace\"\nfile = \"day.csv\"\n";
  for (const std::string trace :
       {"1,high\nx,low\n", "2,high\n1,low\n", "1,vip\n", "1,high,a,b\n", "1,high,a,1,0\n"}) {
    const ConfigErrors errors = errors_of(with(load), {}, trace);
    ASSERT_EQ(errors.size(), 1U) << trace;
    EXPECT_EQ(errors[0].key, "load.t.file");
    EXPECT_NE(errors[0].value.find("day.csv:"), std::string::npos);
  }
}

TEST(ScenarioReader, TheBucketFollowsTheDurationAndIsBounded) {
  Scenario s;
  s.duration = seconds(60);
  EXPECT_EQ(s.bucket_width(), Duration(milliseconds(100)));
  s.duration = std::chrono::hours(1);
  EXPECT_EQ(s.bucket_width(), Duration(seconds(10)));
  EXPECT_FALSE(errors_of(with(""), {"bucket=1ms", "duration=1h"}).empty());
}

}  // namespace
}  // namespace weir::sim
