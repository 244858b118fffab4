// Queues, and services that call others.
#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

TEST(World, MoreThanItsQueueIsTurnedAwayByTheServiceItself) {
  const Scenario s = scenario_of(R"(
duration = "10s"
[[service]]
name = "s"
workers = 1
time = "100ms"
queue_max = 3
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 100
)");
  const RunResult result = run_scenario(s);
  EXPECT_EQ(result.recorder.spans().front().services[0].queue_max, 3U);
  EXPECT_NEAR(static_cast<double>(only(result).ended[2]), 900, 10);
}

TEST(World, TiersWaitForEachOther) {
  const char* const text = R"(
duration = "10s"
[[service]]
name = "a"
workers = 2
time = "10ms"
[[service.call]]
to = "b"
[[service]]
name = "b"
workers = 100
time = "90ms"
[[load]]
name = "l"
to = "a"
arrivals = "constant"
rate = 200
)";
  // Two workers that are held during a call do 20 requests per second; two that are not, 200.
  EXPECT_NEAR(static_cast<double>(only(run_scenario(scenario_of(text))).ok()) / 10, 20, 1);
  const RunResult released = run_scenario(scenario_of(text, {"service.a.holds_worker=false"}));
  EXPECT_NEAR(static_cast<double>(only(released).ok()) / 10, 200, 3);
}

}  // namespace
}  // namespace weir::sim
