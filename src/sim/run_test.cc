#include "run.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const char* const kFixed = R"(
duration = "20s"
[[service]]
name = "s"
workers = 10
time = "10ms"
[service.admission]
[service.admission.limit]
policy = "fixed"
initial_limit = 20
[[load]]
name = "fast"
to = "s"
class = "high"
arrivals = "constant"
rate = 500
[[load]]
name = "slow"
to = "s"
class = "low"
arrivals = "constant"
rate = 100
)";

double value_of(const RunResult& result, Measure measure, std::optional<std::uint32_t> load = {}) {
  VerdictSpec spec;
  spec.measure = measure;
  spec.load = load;
  spec.to = seconds(20);
  return weir::sim::measure(spec, result.recorder, result.balance).value();
}

TEST(Run, MeasuresWhatIsKnownByConstruction) {
  const RunResult result = run_scenario(scenario_of(kFixed));
  EXPECT_NEAR(value_of(result, Measure::kOffered), 600, 1);
  EXPECT_NEAR(value_of(result, Measure::kGoodput), 600, 2);
  EXPECT_NEAR(value_of(result, Measure::kGoodput, 1), 100, 1);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kSuccessRatio), 1);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kShedRatio), 0);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kAmplification), 1);
  EXPECT_NEAR(value_of(result, Measure::kLatencyP50), 10, 0.2);
  EXPECT_NEAR(value_of(result, Measure::kLatencyP999), 10, 0.2);
  EXPECT_NEAR(value_of(result, Measure::kDispatchMean), 10, 0.2);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kLimitMin), 20);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kLimitEnd), 20);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kCriticalShed), 0);
  EXPECT_LE(value_of(result, Measure::kInFlightMax), 8);
}

TEST(Run, AVerdictHoldsWithinItsBoundsAndOnlyThere) {
  Scenario s = scenario_of(kFixed);
  for (const auto& [min, max, holds] :
       {std::tuple{590.0, 610.0, true}, {610.0, 700.0, false}, {100.0, 590.0, false}}) {
    VerdictSpec spec;
    spec.measure = Measure::kGoodput;
    spec.to = seconds(20);
    spec.min = min;
    spec.max = max;
    s.verdicts = {spec};
    EXPECT_EQ(run_scenario(s).passed(), holds) << min;
  }
}

TEST(Run, AVerdictCanCompareTwoLoads) {
  const char* const two = R"(
duration = "20s"
[[service]]
name = "api"
workers = 1000
time = "10ms"
[[load]]
name = "once"
to = "api"
rate = 100
[[load]]
name = "thrice"
to = "api"
rate = 300
time = "20ms"
[[verdict]]
measure = "latency_p50"
load = "thrice"
against = "once"
min = 1.9
max = 2.1
[[verdict]]
measure = "goodput"
load = "once"
against = "thrice"
max = 0.4
[[verdict]]
measure = "shed_ratio"
load = "once"
against = "thrice"
max = 1
)";
  const Scenario s = scenario_of(two);
  const RunResult result = run_scenario(s);
  EXPECT_TRUE(result.verdicts[0].holds) << result.verdicts[0].value;
  EXPECT_NEAR(result.verdicts[1].value, 1.0 / 3, 0.03);
  EXPECT_FALSE(result.verdicts[2].known) << "nothing is divided by zero";
}

TEST(Run, RecoveryIsTheTimeUntilGoodputStays) {
  Scenario s = scenario_of(kFixed);
  FaultSpec crash;
  crash.kind = FaultKind::kCrash;
  crash.at = seconds(5);
  crash.lasts = seconds(3);
  s.services[0].faults = {crash};
  VerdictSpec spec;
  spec.measure = Measure::kRecoveryTime;
  spec.after = seconds(5);
  spec.level = 590;
  spec.to = seconds(20);
  spec.max = 4.0;
  s.verdicts = {spec};
  const RunResult result = run_scenario(s);
  EXPECT_NEAR(result.verdicts[0].value, 3, 0.1);
  EXPECT_TRUE(result.passed());
  s.verdicts[0].level = 5000;
  const RunResult never = run_scenario(s);
  EXPECT_FALSE(never.verdicts[0].known);
  EXPECT_FALSE(never.passed());
}

TEST(Run, ProgressGoesFromNearZeroToOne) {
  std::vector<double> seen;
  static_cast<void>(run_scenario(scenario_of(kFixed), nullptr,
                                 [&](double share, std::uint64_t) { seen.push_back(share); }));
  ASSERT_GT(seen.size(), 50U);
  EXPECT_LT(seen.front(), 0.05);
  EXPECT_DOUBLE_EQ(seen.back(), 1);
}

}  // namespace
}  // namespace weir::sim
