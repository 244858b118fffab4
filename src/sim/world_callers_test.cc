// Callers, their retries and their timeouts.
#include <string>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

TEST(World, CallsOfALoadTakeAsLongAsItSays) {
  const RunResult result = run_scenario(scenario_of(R"(
duration = "10s"
[[service]]
name = "s"
workers = 100
time = "10ms"
[[load]]
name = "pages"
to = "s"
arrivals = "constant"
rate = 100
[[load]]
name = "reports"
to = "s"
arrivals = "constant"
rate = 10
time = "80ms"
)"));
  const auto& calls = result.recorder.spans().front().calls;
  EXPECT_NEAR(to_millis(calls[0].latency.mean()), 10, 0.01);
  EXPECT_NEAR(to_millis(calls[1].latency.mean()), 80, 0.01);
}

TEST(World, WorkNobodyWaitsForIsWastedUnlessCancellingStopsIt) {
  const char* const text = R"(
duration = "20s"
[[service]]
name = "s"
workers = 10
time = "100ms"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 50
timeout = "60ms"
)";
  const RunResult wasted = run_scenario(scenario_of(text));
  const ServiceTotals& s = wasted.recorder.spans().front().services[0];
  EXPECT_GT(s.busy_ns, 0);
  EXPECT_DOUBLE_EQ(s.wasted_ns, s.busy_ns);
  const RunResult stopped = run_scenario(scenario_of(text, {"service.s.stops_running=true"}));
  EXPECT_DOUBLE_EQ(stopped.recorder.spans().front().services[0].busy_ns, 0);
}

TEST(World, RetriesFollowTheirPolicy) {
  const char* const text = R"(
duration = "10s"
[[service]]
name = "s"
workers = 1
time = "1ms"
[service.admission]
[[service.fault]]
at = "0s"
kind = "errors"
share = 1.0
time = "1ms"
[[load]]
name = "l"
to = "s"
arrivals = "constant"
rate = 20
)";
  const auto attempts = [&](const std::string& retry) {
    const CallTotals calls = only(run_scenario(scenario_of(text, {"load.l.retry=" + retry})));
    return static_cast<double>(calls.attempts) / static_cast<double>(calls.offered);
  };
  EXPECT_DOUBLE_EQ(attempts("{ kind = \"none\" }"), 1);
  EXPECT_NEAR(attempts("{ kind = \"immediate\", attempts = 5 }"), 5, 0.1);
  EXPECT_NEAR(attempts("{ kind = \"backoff\", attempts = 3, base = \"10ms\" }"), 3, 0.1);
}

TEST(World, AHintIsObeyed) {
  const char* const text = R"(
duration = "30s"
[[service]]
name = "s"
workers = 4
time = "20ms"
[service.admission]
[service.admission.limit]
policy = "fixed"
initial_limit = 8
[[load]]
name = "l"
to = "s"
class = "low"
rate = 180
)";
  const auto lost = [&](const std::string& retry) {
    const CallTotals calls = only(run_scenario(scenario_of(text, {"load.l.retry=" + retry})));
    return static_cast<double>(calls.ended[1]) / static_cast<double>(calls.ended_all());
  };
  // Callers that follow the hint find room; callers that retry at once use up their attempts.
  EXPECT_LT(lost("{ kind = \"hint\", attempts = 4 }"),
            0.2 * lost("{ kind = \"immediate\", attempts = 4 }"));
}

TEST(World, ClosedClientsNeverHaveMoreThanOneCallEach) {
  const Scenario s = scenario_of(R"(
duration = "30s"
settle = "5s"
[[service]]
name = "s"
workers = 1000
time = "10ms"
[[load]]
name = "l"
to = "s"
arrivals = "closed"
clients = 50
think = "90ms"
)");
  const RunResult result = run_scenario(s);
  EXPECT_EQ(result.recorder.spans().front().services[0].in_flight_max, 50U);
  EXPECT_NEAR(static_cast<double>(only(result).ok()) / 25, 500, 10);
}

}  // namespace
}  // namespace weir::sim
