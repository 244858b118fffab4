// A gateway and its replicas: choice, retries, budget, held requests.
#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

const char* const kThree = R"(
duration = "20s"
seed = 3
[[service]]
name = "api"
workers = 20
time = { kind = "exponential", mean = "5ms" }
[service.replicas]
count = 3
[[load]]
name = "l"
to = "api"
rate = 300
)";

std::uint64_t dispatched(const RunResult& result, std::size_t service) {
  return result.recorder.spans().front().services[service].dispatched;
}

const ServiceTotals& gateway(const RunResult& result) {
  return result.recorder.spans().front().services[0];
}

std::uint64_t sum_of(const Balance& b) {
  return b.ended[0] + b.ended[1] + b.ended[2] + b.ended[3] + b.unfinished;
}

TEST(Replicas, ShareTheLoadUnderEveryRule) {
  for (const char* rule : {"peak_ewma", "round_robin", "least_requests", "hash"}) {
    const RunResult result = run_scenario(
        scenario_of(kThree, {"service.api.replicas.balance=\"" + std::string(rule) + "\""}));
    EXPECT_EQ(only(result).ok(), only(result).ended_all()) << rule;
    EXPECT_EQ(gateway(result).replica_tries, gateway(result).dispatched) << rule;
    for (std::size_t i = 1; i <= 3; ++i) {
      EXPECT_GT(dispatched(result, i), gateway(result).dispatched / 5) << rule << " " << i;
    }
  }
}

TEST(Replicas, WeightsAreParts) {
  const RunResult result =
      run_scenario(scenario_of(kThree, {"service.api.replicas.balance=\"round_robin\"",
                                        "service.api.replica=[{number=1, weight=0.5}]"}));
  EXPECT_NEAR(static_cast<double>(dispatched(result, 1)), 6000.0 / 5, 60);
}

TEST(Replicas, ACrashIsHiddenByRetries) {
  const char* const crash =
      "service.api.fault=[{at=\"5s\", kind=\"crash\", lasts=\"5s\", replica=2}]";
  const RunResult result = run_scenario(scenario_of(kThree, {crash}));
  EXPECT_EQ(only(result).ok(), only(result).ended_all());
  EXPECT_GT(gateway(result).replica_tries, gateway(result).dispatched);
  EXPECT_GT(gateway(result).ejections, 0U);
  // What must not be sent twice fails if it was inside; what was not sent does not.
  const RunResult writes =
      run_scenario(scenario_of(kThree, {crash, "service.api.replicas.idempotent=false"}));
  const std::uint64_t lost = only(writes).ended[2];
  EXPECT_LT(lost, 10U);
  EXPECT_EQ(only(writes).ok() + lost, only(writes).ended_all());
}

TEST(Replicas, RetriesAreBoundedByTheBudget) {
  const char* const errors =
      "service.api.fault=[{at=\"0s\", kind=\"errors\", share=1, time=\"1ms\"}]";
  const RunResult result = run_scenario(
      scenario_of(kThree, {errors, "service.api.replicas.budget_tokens=10", "load.l.rate=1000"}));
  const auto requests = static_cast<double>(gateway(result).dispatched);
  const auto tries = static_cast<double>(gateway(result).replica_tries);
  EXPECT_LE(tries, 1.1 * requests + 10);
  EXPECT_GT(tries, 1.05 * requests);
}

TEST(Replicas, RequestsWithoutAReplicaAreHeld) {
  const std::vector<std::string> set = {
      "service.api.replicas.count=1",
      "service.api.fault=[{at=\"5s\", kind=\"crash\", lasts=\"1s\"}]"};
  const RunResult held = run_scenario(scenario_of(kThree, set));
  EXPECT_EQ(only(held).ok(), only(held).ended_all());
  std::vector<std::string> at_once = set;
  at_once.push_back("service.api.replicas.hold_max=\"0s\"");
  EXPECT_GT(only(run_scenario(scenario_of(kThree, at_once))).ended[2], 200U);
}

const std::vector<std::string> kOneCrashes = {
    "service.api.replicas.count=1", "service.api.fault=[{at=\"5s\", kind=\"crash\", lasts=\"1s\"}]",
    "service.api.admission={limit={policy=\"fixed\", initial_limit=50, max_limit=50}}"};

TEST(Replicas, HeldRequestsDoNotOccupyTheLimit) {
  const RunResult result = run_scenario(scenario_of(kThree, kOneCrashes));
  EXPECT_EQ(only(result).refused, 0U) << "three hundred are held, and the limit is 50";
  EXPECT_EQ(only(result).ok(), only(result).ended_all());
  EXPECT_LE(gateway(result).in_flight_max, 50U);
}

TEST(Replicas, NotMoreThanProductionWouldAreHeld) {
  std::vector<std::string> many = kOneCrashes;
  many.emplace_back("load.l.rate=3000");
  const RunResult result = run_scenario(scenario_of(kThree, many));
  EXPECT_GT(only(result).ended[2], 1000U) << "three thousand come in that second";
  EXPECT_EQ(result.balance.started, sum_of(result.balance));
}

TEST(Replicas, EveryCallEndsOnceWhateverFails) {
  const char* const chaos = R"(
duration = "30s"
[[service]]
name = "api"
workers = 4
time = { kind = "lognormal", median = "10ms", sigma = 1 }
queue_max = 20
timeout = "2s"
admission = {}
[service.replicas]
count = 4
timeout = "300ms"
[[service.fault]]
at = "3s"
kind = "pause"
lasts = "4s"
replica = 1
[[service.fault]]
at = "5s"
kind = "crash"
lasts = "3s"
replica = 2
[[service.fault]]
at = "9s"
kind = "errors"
share = 0.5
time = "1ms"
lasts = "9s"
[[service.fault]]
at = "20s"
kind = "slow"
factor = 30
lasts = "5s"
replica = 3
[[load]]
name = "l"
to = "api"
rate = 900
timeout = "500ms"
sends_deadline = true
retry = { kind = "backoff", attempts = 3, base = "50ms" }
)";
  for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
    const Scenario s = scenario_of(chaos, {seed});
    const RunResult result = run_scenario(s);
    EXPECT_EQ(result.balance.started, sum_of(result.balance)) << seed;
    EXPECT_EQ(result.balance.unfinished, 0U) << seed;
    EXPECT_EQ(result.digest, run_scenario(s).digest) << seed;
    EXPECT_GT(only(result).ok(), only(result).ended_all() / 3) << seed;
  }
}

TEST(Replicas, AClientThatLeavesFreesThePlaceAtTheReplica) {
  const Scenario s = scenario_of(
      kThree, {"service.api.time=\"200ms\"", "load.l.timeout=\"50ms\"", "load.l.rate=50"});
  World world(s);
  world.run_until(world.end());
  EXPECT_EQ(world.balance().unfinished, 0U);
  EXPECT_EQ(world.balance().ended[3], world.balance().started);
}

}  // namespace
}  // namespace weir::sim
