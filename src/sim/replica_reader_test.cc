// Replicas in a scenario file.
#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

const char* const kReplicated = R"(
duration = "10s"
[[service]]
name = "api"
workers = 4
time = "5ms"
[service.replicas]
count = 3
balance = "round_robin"
attempts = 2
timeout = "1s"
budget_pct = 0.2
budget_tokens = 7
[[service.replica]]
number = 2
workers = 9
weight = 0.5
link = { delay = "50ms" }
[[service.fault]]
at = "1s"
kind = "slow"
factor = 2
[[service.fault]]
at = "2s"
kind = "crash"
lasts = "1s"
replica = 3
[[service]]
name = "other"
workers = 1
time = "1ms"
[[load]]
name = "l"
to = "api"
rate = 10
[[verdict]]
measure = "dispatched"
service = "api-2"
min = 0
)";

TEST(ReplicaReader, ReplicasBecomeServicesBehindAGateway) {
  const Scenario s = scenario_of(kReplicated);
  ASSERT_EQ(s.services.size(), 5U);
  const ServiceSpec& gateway = s.services[0];
  EXPECT_TRUE(gateway.time.is_zero());
  EXPECT_TRUE(gateway.faults.empty());
  ASSERT_EQ(gateway.calls.size(), 3U);
  EXPECT_EQ(gateway.calls[2].to, 4U);
  EXPECT_EQ(gateway.calls[1].caller.timeout, std::chrono::seconds(1));
  EXPECT_EQ(gateway.calls[1].caller.link.delay.a, std::chrono::milliseconds(50));
  EXPECT_EQ(gateway.replicas->balance, policy::Balance::kRoundRobin);
  EXPECT_EQ(gateway.replicas->attempts_max, 2U);
  EXPECT_EQ(gateway.replicas->budget.deposit_millitokens, 200U);
  EXPECT_EQ(gateway.replicas->budget.cap_millitokens, 7000U);
  EXPECT_DOUBLE_EQ(gateway.replicas->each[1].weight, 0.5);
  EXPECT_EQ(s.services[2].name, "api-1");
  EXPECT_EQ(s.services[3].workers, 9U);
  EXPECT_EQ(s.services[3].faults.size(), 1U);
  EXPECT_EQ(s.services[4].faults.size(), 2U);
  EXPECT_EQ(s.verdicts[0].service, 3U);
}

std::string faults_of(const std::vector<std::string>& set) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  auto scenario = read_scenario_text(kReplicated, "test.toml", set, none);
  return scenario ? "" : printed(scenario.error());
}

TEST(ReplicaReader, WrongValuesAreNamed) {
  EXPECT_NE(faults_of({"service.api.replicas.count=0"}).find("1 to 1000"), std::string::npos);
  EXPECT_NE(faults_of({"service.api.replicas.balance=\"best\""}).find("peak_ewma"),
            std::string::npos);
  EXPECT_NE(faults_of({"service.api.fault.1.replica=4"}).find("1 to 3"), std::string::npos);
  EXPECT_NE(faults_of({"service.api.replica.0.number=4"}).find("1 to 3"), std::string::npos);
  EXPECT_NE(faults_of({"service.api.call=[{to=\"other\"}]"}).find("without replicas"),
            std::string::npos);
  EXPECT_NE(faults_of({"service.other.fault=[{at=\"1s\", kind=\"slow\", factor=2, replica=1}]"}),
            "");
}

}  // namespace
}  // namespace weir::sim
