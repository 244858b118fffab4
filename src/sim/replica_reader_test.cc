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

TEST(ReplicaReader, HedgingHasTheOptionsOfTheGateway) {
  EXPECT_FALSE(scenario_of(kReplicated).services[0].replicas->hedge);
  const Scenario s = scenario_of(
      kReplicated, {"service.api.replicas.hedge={max_delay_ms=70, quantile=0.9, budget_pct=0.3}",
                    "service.api.replicas.cancel=false"});
  const ReplicasSpec& replicas = *s.services[0].replicas;
  ASSERT_TRUE(replicas.hedge);
  policy::HedgeConfig wanted;
  wanted.max_delay = std::chrono::milliseconds(70);
  wanted.quantile = 0.9;
  wanted.budget_pct = 0.3;
  EXPECT_EQ(*replicas.hedge, wanted);
  EXPECT_FALSE(replicas.cancel);
  EXPECT_EQ(replicas.budget.deposit_millitokens, 200U) << "the replicas' own value goes first";
}

TEST(ReplicaReader, ALinkToAReplicaRetransmitsAsTcpDoes) {
  const Scenario s = scenario_of(kReplicated, {"service.api.replica=[{number=1, link={loss=0.1}}, "
                                               "{number=2, link={loss=0.1, retransmit=\"1s\"}}]"});
  const std::vector<CallSpec>& calls = s.services[0].calls;
  EXPECT_EQ(calls[0].caller.link.retransmit, std::chrono::milliseconds(200));
  EXPECT_EQ(calls[1].caller.link.retransmit, std::chrono::seconds(1));
}

TEST(ReplicaReader, AStallIsAFaultOfTheGateway) {
  const Scenario s = scenario_of(
      kReplicated, {"service.api.fault=[{at=\"1s\", kind=\"stall\", lasts=\"1s\"}, "
                    "{at=\"2s\", kind=\"absent\", share=0.5, every=\"5s\", lasts=\"1s\"}]"});
  ASSERT_EQ(s.services[0].faults.size(), 1U);
  EXPECT_EQ(s.services[0].faults[0].kind, FaultKind::kStall);
  ASSERT_EQ(s.services[2].faults.size(), 1U);
  EXPECT_EQ(s.services[2].faults[0].kind, FaultKind::kAbsent);
  EXPECT_EQ(s.services[2].faults[0].every, std::chrono::seconds(5));
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
  EXPECT_NE(faults_of({"service.api.replicas.hedge={quantile=2}"}).find("quantile"),
            std::string::npos);
  EXPECT_NE(faults_of({"service.api.replicas.hedge={delay=2}"}).find("delay"), std::string::npos);
  EXPECT_NE(faults_of({"service.other.fault=[{at=\"1s\", kind=\"stall\", lasts=\"1s\"}]"})
                .find("service.replicas"),
            std::string::npos);
  EXPECT_NE(faults_of({"service.api.fault=[{at=\"1s\", kind=\"pause\", lasts=\"2s\", "
                       "every=\"1s\"}]"})
                .find("every"),
            std::string::npos);
  EXPECT_NE(faults_of({"service.api.call=[{to=\"other\"}]"}).find("without replicas"),
            std::string::npos);
  EXPECT_NE(faults_of({"service.other.fault=[{at=\"1s\", kind=\"slow\", factor=2, replica=1}]"}),
            "");
}

}  // namespace
}  // namespace weir::sim
