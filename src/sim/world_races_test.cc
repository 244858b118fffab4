// Hedged reads of a gateway: what the executor decides happens at the replicas.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

const char* const kHedged = R"(
duration = "20s"
seed = 3
[[service]]
name = "api"
workers = 50
[service.time]
kind = "lognormal"
median = "5ms"
sigma = 0.3
stragglers = { share = 0.05, factor = 20 }
[service.replicas]
count = 3
[service.replicas.hedge]
[[load]]
name = "l"
to = "api"
rate = 500
)";

const ServiceTotals& hedging(const RunResult& result) {
  return result.recorder.spans().front().services[0];
}

std::uint64_t not_sent(const RunResult& result, policy::NoHedge reason) {
  return hedging(result).hedges.not_sent[static_cast<std::size_t>(reason)];
}

std::uint64_t all_ends(const Balance& b) {
  return b.ended[0] + b.ended[1] + b.ended[2] + b.ended[3] + b.unfinished;
}

TEST(ReadRaces, SlowAnswersAreHiddenForFewMoreAttempts) {
  const RunResult plain =
      run_scenario(scenario_of(kHedged, {"service.api.replicas.hedge.enabled=false"}));
  const RunResult hedged = run_scenario(scenario_of(kHedged));
  EXPECT_EQ(hedging(plain).hedges.sent, 0U);
  EXPECT_GT(only(plain).latency.quantile(0.99), 3 * only(hedged).latency.quantile(0.99));
  const HedgeTotals& hedges = hedging(hedged).hedges;
  EXPECT_GT(hedges.sent, 300U);
  EXPECT_EQ(hedges.sent, hedges.won + hedges.lost);
  EXPECT_EQ(hedging(hedged).replica_tries, hedging(hedged).dispatched + hedges.sent);
  const std::uint64_t judged = not_sent(hedged, policy::NoHedge::kNotNeeded) + hedges.sent;
  EXPECT_NEAR(static_cast<double>(judged), static_cast<double>(hedging(hedged).dispatched), 20)
      << "all but those under way at the end";
}

// As World.TheRunIsTheSameWithEveryCompiler.
TEST(ReadRaces, TheRunIsTheSameWithEveryCompiler) {
  EXPECT_EQ(run_scenario(scenario_of(kHedged)).digest, 12634104414041907189U);
}

TEST(ReadRaces, AWriteIsNotHedged) {
  const RunResult result =
      run_scenario(scenario_of(kHedged, {"service.api.replicas.idempotent=false"}));
  EXPECT_EQ(hedging(result).replica_tries, hedging(result).dispatched);
}

TEST(ReadRaces, OneReplicaHasNobodyToHedgeTo) {
  const RunResult result = run_scenario(scenario_of(kHedged, {"service.api.replicas.count=1"}));
  EXPECT_EQ(hedging(result).hedges.sent, 0U);
}

TEST(ReadRaces, HedgesStayWithinTheBudget) {
  const RunResult result =
      run_scenario(scenario_of(kHedged, {"service.api.replicas.hedge.quantile=0.5",
                                         "service.api.replicas.hedge.budget_pct=0.05",
                                         "service.api.replicas.hedge.max_budget_tokens=20"}));
  const auto requests = static_cast<double>(hedging(result).dispatched);
  EXPECT_LE(static_cast<double>(hedging(result).hedges.sent), 0.05 * requests + 20);
  EXPECT_GT(static_cast<double>(hedging(result).hedges.sent), 0.045 * requests);
  EXPECT_GT(not_sent(result, policy::NoHedge::kBudget), 100U);
}

TEST(ReadRaces, ALoserLeavesItsReplicaUnlessCancellationsAreIgnored) {
  const auto wasted = [](const char* cancel) {
    const Scenario s = scenario_of(kHedged, {std::string("service.api.replicas.cancel=") + cancel});
    const RunResult result = run_scenario(s);
    double busy = 0;
    for (std::size_t i = 1; i <= 3; ++i) {
      busy += result.recorder.spans().front().services[i].wasted_ns;
    }
    return busy;
  };
  EXPECT_GT(wasted("false"), 3 * wasted("true"));
}

TEST(ReadRaces, NotFoundOfAHedgeIsUsedOnlyIfThePrimaryFails) {
  const std::vector<std::string> lags = {
      "service.api.replicas.count=2", "service.api.replica=[{number=2, weight=0.01}]",
      "service.api.fault=[{at=\"0s\", kind=\"absent\", share=1, replica=2}]"};
  const RunResult result = run_scenario(scenario_of(kHedged, lags));
  EXPECT_GT(hedging(result).hedges.sent, 300U);
  EXPECT_LT(hedging(result).hedges.won, 5U) << "where replica 2 was the first";
  EXPECT_LT(only(result).absent, only(result).ok() / 50);
}

TEST(ReadRaces, AStalledGatewayHedgesNothingForThat) {
  const std::vector<std::string> stalls = {
      "service.api.time={kind=\"uniform\", min=\"4ms\", max=\"6ms\"}",
      "service.api.replicas.hedge.min_delay_ms=10",
      "service.api.replicas.hedge.default_delay_ms=10",
      "service.api.fault=[{at=\"1s\", every=\"1s\", kind=\"stall\", lasts=\"50ms\"}]"};
  const RunResult result = run_scenario(scenario_of(kHedged, stalls));
  EXPECT_EQ(hedging(result).hedges.sent, 0U);
  EXPECT_GT(only(result).latency.above(std::chrono::milliseconds(30)), 100U);
  EXPECT_EQ(hedging(result).suspicions, 0U);
  EXPECT_EQ(result.balance.unfinished, 0U);
}

TEST(ReadRaces, AFailureIsFollowedByAnotherReplicaAtOnce) {
  const RunResult result = run_scenario(scenario_of(
      kHedged, {"service.api.fault=[{at=\"5s\", kind=\"crash\", lasts=\"5s\", replica=2}]"}));
  EXPECT_EQ(only(result).ok(), only(result).ended_all());
}

TEST(ReadRaces, RequestsWithoutAReplicaAreHeld) {
  const RunResult result = run_scenario(
      scenario_of(kHedged, {"service.api.fault=[{at=\"5s\", kind=\"crash\", lasts=\"1s\"}]"}));
  EXPECT_GT(only(result).latency.above(std::chrono::milliseconds(200)), 100U);
  EXPECT_GT(only(result).ok(), only(result).ended_all() * 99 / 100);
}

TEST(ReadRaces, EveryCallEndsOnceWhateverFails) {
  const std::vector<std::string> chaos = {
      "duration=\"30s\"",
      "service.api.workers=4",
      "service.api.queue_max=20",
      "service.api.timeout=\"2s\"",
      "service.api.admission={}",
      "service.api.replicas.count=4",
      "service.api.replicas.timeout=\"300ms\"",
      "service.api.replica=[{number=4, link={delay=\"5ms\", loss=0.05, retransmit=\"0s\"}}]",
      R"(service.api.fault=[{at="3s", kind="pause", lasts="4s", replica=1},
        {at="5s", kind="crash", lasts="3s", replica=2}, {at="6s", kind="stall", lasts="100ms"},
        {at="9s", kind="errors", share=0.5, time="1ms", lasts="9s"},
        {at="10s", kind="absent", share=0.5, lasts="9s"},
        {at="20s", kind="slow", factor=30, lasts="5s", replica=3}])",
      "load.l.rate=900",
      "load.l.timeout=\"500ms\"",
      "load.l.sends_deadline=true",
      "load.l.retry={kind=\"backoff\", attempts=3, base=\"50ms\"}"};
  const std::pair<const char*, const char*> runs[] = {
      {"seed=1", "true"}, {"seed=2", "true"}, {"seed=3", "false"}};
  for (const auto& [seed, cancel] : runs) {
    std::vector<std::string> set = chaos;
    set.emplace_back(seed);
    set.push_back(std::string("service.api.replicas.cancel=") + cancel);
    const RunResult result = run_scenario(scenario_of(kHedged, set));
    EXPECT_EQ(result.balance.started, all_ends(result.balance)) << seed;
    EXPECT_EQ(result.balance.unfinished, 0U) << seed;
    EXPECT_GT(only(result).ok(), only(result).ended_all() / 3) << seed;
    EXPECT_GT(hedging(result).hedges.sent, 0U) << seed;
  }
}

TEST(ReadRaces, AClientThatLeavesEndsAllAttempts) {
  const Scenario s =
      scenario_of(kHedged, {"service.api.time=\"200ms\"", "load.l.timeout=\"50ms\"",
                            "load.l.rate=50", "service.api.replicas.hedge.max_delay_ms=500"});
  World world(s);
  world.run_until(world.end());
  EXPECT_EQ(world.balance().unfinished, 0U);
  EXPECT_EQ(world.balance().ended[3], world.balance().started);
}

TEST(ReadRaces, AWorldMayEndInTheMiddleOfARace) {
  const Scenario s = scenario_of(kHedged, {"load.l.rate=5000"});
  World world(s);
  world.run_until(TimePoint(std::chrono::milliseconds(1234)));
  EXPECT_GT(world.balance().unfinished, 0U);
}

}  // namespace
}  // namespace weir::sim
