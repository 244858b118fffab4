// Several gateways before one service.
#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

const std::vector<std::string> kFour = {"service.api.gateways=4", "duration=5s"};

TEST(GatewayGroup, EveryGatewayHasALimiterAndAPartOfTheCalls) {
  const Scenario s = scenario_of(kPlain, kFour);
  ASSERT_EQ(s.services.size(), 5U);
  EXPECT_FALSE(s.services[0].admission.has_value());
  EXPECT_EQ(s.loads[0].to, 1U);
  EXPECT_EQ(s.loads[0].spread, 4U);
  const RunResult result = run_scenario(s);
  const SpanTotals& span = result.recorder.spans().front();
  double all = 0;
  for (std::size_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(s.services[i].group, "gateways of api");
    EXPECT_GT(span.services[i].completed, 100U) << i;
    all += static_cast<double>(span.services[i].completed);
  }
  EXPECT_EQ(static_cast<std::uint64_t>(all), span.services[0].completed);
}

TEST(GatewayGroup, TheTimeOfALoadHoldsBehindAGateway) {
  std::vector<std::string> set = kFour;
  set.emplace_back("load.web.time=3ms");
  set.emplace_back("load.web.rate=100");
  const RunResult result = run_scenario(scenario_of(kPlain, set));
  EXPECT_NEAR(to_millis(only(result).latency.quantile(0.5)), 3, 0.2);
}

std::vector<std::string> ten_that_share(const char* shared) {
  return {"service.api.gateways=10",
          std::string("service.api.shared_baseline=") + shared,
          "service.api.workers=100",
          "load.web.rate=15000",
          "duration=60s",
          "settle=20s"};
}

double in_flight(const RunResult& result) {
  VerdictSpec verdict;
  verdict.measure = Measure::kInFlightMean;
  verdict.from = std::chrono::seconds(20);
  verdict.to = std::chrono::seconds(60);
  return measure(verdict, result.recorder, result.balance).value();
}

TEST(GatewayGroup, GatewaysThatShareABaselineKeepTheQueueShort) {
  const double alone = in_flight(run_scenario(scenario_of(kPlain, ten_that_share("false"))));
  const double shared = in_flight(run_scenario(scenario_of(kPlain, ten_that_share("true"))));
  EXPECT_GT(alone, 1.5 * shared);
  EXPECT_LT(shared, 160);
}

TEST(GatewayGroup, AGatewayThatJoinsLateGetsNothingBefore) {
  const Scenario s = scenario_of(
      std::string(kPlain).insert(std::string(kPlain).find("[service.admission]"),
                                 "gateways = 4\nshared_baseline = true\n[[service.fault]]\n"
                                 "at = \"0s\"\nkind = \"gateways\"\ngateways = 3\n"
                                 "lasts = \"10s\"\n"));
  World world(s);
  world.run_until(TimePoint(std::chrono::seconds(10)));
  EXPECT_EQ(world.controller(4)->stats().admitted, 0U);
  world.run_until(world.end());
  EXPECT_GT(world.controller(4)->stats().admitted, 100U);
}

TEST(GatewayGroup, SharesAreOfTheMeanOfAllGateways) {
  std::vector<std::string> set = kFour;
  set.emplace_back("load.web.rate=400");
  const Scenario s = scenario_of(kPlain, set);
  const RunResult result = run_scenario(s);
  VerdictSpec verdict;
  verdict.gateways = s.services[0].gateways;
  verdict.first_gateway = s.services[0].first_gateway;
  verdict.to = std::chrono::seconds(5);
  verdict.measure = Measure::kFairShareMin;
  const double least = measure(verdict, result.recorder, result.balance).value();
  verdict.measure = Measure::kFairShareMax;
  const double most = measure(verdict, result.recorder, result.balance).value();
  EXPECT_GT(least, 0.8);
  EXPECT_LT(least, 1);
  EXPECT_GT(most, 1);
  EXPECT_LT(most, 1.2);
  verdict.gateways = 1;
  EXPECT_FALSE(measure(verdict, result.recorder, result.balance).has_value());
}

TEST(GatewayGroup, WithoutAdmissionThereIsNothingToShare) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  const auto read = read_scenario_text(
      "[[service]]\nname = \"s\"\ntime = \"1ms\"\nworkers = 1\ngateways = 2\n"
      "[[load]]\nname = \"l\"\nto = \"s\"\nrate = 1\n",
      "test.toml", {}, none);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(printed(read.error()).find("no admission"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
