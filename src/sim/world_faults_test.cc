// Faults of a world and their durations: pauses, slowness, crashes, memory and links.
#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

TEST(World, APauseDelaysEverybodyByItsLength) {
  const Scenario s = scenario_of(R"(
duration = "10s"
[[service]]
name = "s"
workers = 100
time = "10ms"
[[service.fault]]
at = "2s"
kind = "pause"
lasts = "3s"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 100
)");
  const CallTotals calls = only(run_scenario(s));
  EXPECT_NEAR(static_cast<double>(calls.latency.count()), static_cast<double>(calls.offered), 1);
  EXPECT_NEAR(to_seconds(calls.latency.max()), 3.01, 0.011);
  EXPECT_NEAR(to_millis(calls.latency.quantile(0.5)), 10, 0.2);
}

TEST(World, SlownessLastsAsLongAsItIsSaid) {
  const Scenario s = scenario_of(R"(
duration = "9s"
[[service]]
name = "s"
workers = 100
time = "10ms"
[[service.fault]]
at = "3s"
kind = "slow"
factor = 4
lasts = "3s"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 100
)");
  const RunResult result = run_scenario(s);
  EXPECT_NEAR(to_millis(only(result).latency.mean()), 20, 0.2);
  EXPECT_NEAR(to_millis(only(result).latency.max()), 40, 0.1);
}

TEST(World, ACrashFailsWhatIsInsideAndRefusesConnectionsUntilItIsBack) {
  const Scenario s = scenario_of(R"(
duration = "10s"
[[service]]
name = "s"
workers = 10
time = "100ms"
[service.admission]
[[service.fault]]
at = "4s"
kind = "crash"
lasts = "2s"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 50
)");
  const RunResult result = run_scenario(s);
  const CallTotals& calls = only(result);
  EXPECT_NEAR(static_cast<double>(calls.ended[2]), 100 + 5, 2);
  EXPECT_EQ(calls.ended[0] + calls.ended[2], calls.ended_all());
  EXPECT_EQ(result.recorder.spans().front().services[0].crashes, 1U);
}

TEST(World, MemoryThatRunsOutKillsTheService) {
  const Scenario s = scenario_of(R"(
duration = "10s"
[[service]]
name = "s"
workers = 1
time = "100ms"
[service.memory]
used = [ { at = "0s", used = 0.5 } ]
per_request = 0.01
restart = "1s"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 100
)");
  const RunResult result = run_scenario(s);
  EXPECT_GE(result.recorder.spans().front().services[0].crashes, 4U);
}

TEST(World, LinksDelayBothWaysAndLoseWhatTheySay) {
  const Scenario s = scenario_of(R"(
duration = "50s"
[[service]]
name = "s"
workers = 100
time = "10ms"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 1000
link = { delay = "7ms", loss = 0.1 }
timeout = "1s"
)");
  const CallTotals calls = only(run_scenario(s));
  EXPECT_NEAR(to_millis(calls.latency.quantile(0.5)), 24, 0.4);
  const double lost = static_cast<double>(calls.ended[3]) / static_cast<double>(calls.ended_all());
  EXPECT_NEAR(lost, 0.19, 0.01);  // in either direction: 1 - 0.9²
}

}  // namespace
}  // namespace weir::sim
