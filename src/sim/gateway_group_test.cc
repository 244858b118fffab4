// Several gateways before one service.
#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"

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
