// Services that divide their workers, and requests that use several.
#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

// M/G/1 with processor sharing: the mean time is S / (1 - load), whatever the distribution of S.
TEST(WorldSharing, TheMeanTimeDependsOnTheLoadAndNotOnTheDistribution) {
  for (const char* time :
       {"{ kind = \"exponential\", mean = \"10ms\" }",
        "{ kind = \"bimodal\", fast = \"2ms\", slow = \"82ms\", slow_share = 0.1 }"}) {
    const Scenario s = scenario_of(std::string("duration = \"600s\"\nseed = 3\n[[service]]\nname = "
                                               "\"s\"\nworkers = 1\nsharing = true\ntime = ") +
                                   time + "\n[[load]]\nname = \"l\"\nto = \"s\"\nrate = 70\n");
    const RunResult result = run_scenario(s);
    EXPECT_NEAR(to_millis(only(result).latency.mean()), 10 / 0.3, 2) << time;
  }
}

TEST(WorldSharing, APauseDelaysEverythingByItsLength) {
  const Scenario s = scenario_of(R"(
duration = "10s"
[[service]]
name = "s"
workers = 4
sharing = true
time = "100ms"
[[service.fault]]
at = "1050ms"
kind = "pause"
lasts = "2s"
[[load]]
name = "l"
to = "s"
arrivals = "bursts"
every = "1s"
size = 2
stops = "1500ms"
)");
  const RunResult result = run_scenario(s);
  EXPECT_EQ(only(result).ok(), 4U);
  EXPECT_NEAR(to_millis(only(result).latency.max()), 2100, 1);
}

TEST(WorldSharing, ARequestThatUsesFourWorkersWaitsUntilFourAreFree) {
  const char* const text = R"(
duration = "10s"
[[service]]
name = "s"
workers = 8
time = "100ms"
[[load]]
name = "wide"
to = "s"
arrivals = "constant"
rate = 100
width = 4
)";
  EXPECT_NEAR(static_cast<double>(only(run_scenario(scenario_of(text))).ok()), 200, 5);
  // Wider than the service: it runs alone.
  EXPECT_NEAR(
      static_cast<double>(only(run_scenario(scenario_of(text, {"load.wide.width=9"}))).ok()), 100,
      5);
}

}  // namespace
}  // namespace weir::sim
