#include "world.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

using std::chrono::seconds;

std::uint64_t ended(const Balance& b) {
  return b.ended[0] + b.ended[1] + b.ended[2] + b.ended[3];
}

std::string hex(std::uint64_t digest) {
  std::ostringstream text;
  text << std::hex << digest;
  return text.str();
}

TEST(World, LittlesLawHoldsBehindARealController) {
  const Scenario s = scenario_of(kPlain, {"load.web.rate=600", "duration=60s"});
  const RunResult result = run_scenario(s);
  double in_flight = 0;
  for (const SeriesPoint& p : result.recorder.series()) in_flight += p.services[0].in_flight;
  in_flight /= static_cast<double>(result.recorder.series().size());
  const ServiceTotals& service = result.recorder.spans().front().services[0];
  const double rate = static_cast<double>(service.completed) / 60;
  EXPECT_NEAR(in_flight / (rate * to_seconds(service.dispatch.mean())), 1, 0.1);
}

TEST(World, EqualSeedsGiveEqualRunsAndOthersDoNot) {
  const Scenario s = scenario_of(kPlain);
  EXPECT_EQ(run_scenario(s).digest, run_scenario(s).digest);
  EXPECT_NE(run_scenario(s).digest, run_scenario(scenario_of(kPlain, {"seed=8"})).digest);
}

/// All features together: faults, retries, timeouts, losses, tiers, memory.
const char* const kEverything = R"(
duration = "30s"
drain = "30s"
[[service]]
name = "a"
workers = 16
time = { kind = "lognormal", median = "4ms", sigma = 0.8 }
timeout = "400ms"
[[service.call]]
to = "b"
timeout = "150ms"
retry = { kind = "backoff", attempts = 2, base = "5ms" }
[[service.call]]
to = "c"
timeout = "200ms"
cancels = false
[service.admission]
[service.admission.actors]
inflight_max = 40
[[service.fault]]
at = "8s"
kind = "pause"
lasts = "1s"
[[service]]
name = "b"
workers = 10
time = { kind = "pareto", min = "2ms", alpha = 1.6, max = "500ms" }
holds_worker = false
queue_max = 200
[service.admission]
[service.memory]
used = [ { at = "0s", used = 0.3 }, { at = "20s", used = 0.97 }, { at = "25s", used = 0.3 } ]
per_request = 0.002
restart = "1s"
[[service.fault]]
at = "12s"
kind = "errors"
share = 0.3
time = "1ms"
lasts = "3s"
[[service]]
name = "c"
workers = 8
time = { kind = "bimodal", fast = "2ms", slow = "60ms", slow_share = 0.1 }
stops_running = true
[[service.fault]]
at = "16s"
kind = "crash"
lasts = "2s"
[[service.fault]]
at = "22s"
kind = "workers"
workers = 4
[[load]]
name = "people"
to = "a"
class = "high"
rate = 500
actors = 20
timeout = "300ms"
sends_deadline = true
link = { delay = { kind = "uniform", min = "1ms", max = "3ms" }, loss = 0.01 }
retry = { kind = "hint", attempts = 3 }
[[load]]
name = "robots"
to = "a"
class = "low"
arrivals = "closed"
clients = 60
think = { kind = "exponential", mean = "50ms" }
timeout = "500ms"
cancels = false
retry = { kind = "immediate", attempts = 4 }
[[load]]
name = "bursts"
to = "b"
arrivals = "bursts"
every = "2s"
size = 300
spread = "20ms"
peers = 5
[[load]]
name = "probes"
to = "a"
class = "critical"
arrivals = "constant"
rate = 20
)";

// Recorded once: a compiler, library or machine that gives another number breaks replay.
TEST(World, TheRunIsTheSameWithEveryCompiler) {
  EXPECT_EQ(hex(run_scenario(scenario_of(kPlain)).digest), "5304056ffd5306f");
  EXPECT_EQ(hex(run_scenario(scenario_of(kEverything)).digest), "ab79f89874357dcb");
}

TEST(World, EveryCallEndsExactlyOnce) {
  for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
    const Scenario s = scenario_of(kEverything, {seed});
    World world(s);
    for (int i = 1; i <= 120; ++i) {
      world.run_until(TimePoint(world.end().time_since_epoch() * i / 120));
      const Balance b = world.balance();
      ASSERT_EQ(b.started, ended(b) + b.unfinished);  // at every instant, not only at the end
    }
    const Balance b = world.balance();
    EXPECT_EQ(b.unfinished, 0U);
    EXPECT_GT(b.ended[0], 10000U);
    EXPECT_GT(b.ended[1], 0U);
    EXPECT_GT(b.ended[2], 0U);
    EXPECT_GT(b.ended[3], 0U);
    EXPECT_EQ(b.critical_shed, 0U);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const AdmissionStats stats = world.controller(i)->stats();
      EXPECT_EQ(stats.in_flight, 0U);
      EXPECT_EQ(stats.bytes, 0U);
    }
  }
}

TEST(World, AWorldMayEndInTheMiddleOfEverything) {
  const Scenario s = scenario_of(kEverything);
  World world(s);
  world.run_until(TimePoint(std::chrono::milliseconds(8500)));  // paused, the waiting room full
  EXPECT_GT(world.balance().unfinished, 0U);
}

TEST(World, AttemptsSeenByTheControllerAreAttemptsSent) {
  const RunResult result = run_scenario(scenario_of(kPlain));
  const CallTotals& calls = only(result);
  EXPECT_EQ(calls.attempts, calls.arrived);
  EXPECT_EQ(calls.offered, calls.attempts);
  const ServiceTotals& service = result.recorder.spans().front().services[0];
  std::uint64_t refused = 0;
  for (const std::uint64_t r : service.refused) refused += r;
  EXPECT_EQ(refused, calls.refused);
}

TEST(World, MemoryDoesNotGrowWithTheTimeSimulated) {
  const auto places = [](const char* duration) {
    const Scenario s = scenario_of(kPlain, {std::string("duration=") + duration});
    World world(s);
    world.run_until(world.end());
    return world.recorder().series().size();
  };
  EXPECT_LE(places("100s"), 600U);
  EXPECT_LE(places("400s"), 600U);
}

}  // namespace
}  // namespace weir::sim
