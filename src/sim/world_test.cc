#include "sim/world.h"

#include <cmath>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "sim/run.h"
#include "sim/scenario_test_support.h"

namespace weir {
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

const CallTotals& only(const RunResult& result) {
  return result.recorder.spans().front().calls.at(0);
}

/// The mean wait in the queue of M/M/k, by Erlang's C formula, in units of the service time.
double erlang_wait(int k, double rho) {
  const double offered = k * rho;
  double blocked = 1;  // Erlang B, by its recursion
  for (int i = 1; i <= k; ++i) blocked = offered * blocked / (i + offered * blocked);
  const double waits = blocked / (1 - rho * (1 - blocked));
  return waits / (k * (1 - rho));
}

double queue_mean_ms(int workers, double rho, const char* duration) {
  const Scenario s = scenario_of(
      R"(
settle = "20s"
[[service]]
name = "s"
workers = 1
time = { kind = "exponential", mean = "1ms" }
[[load]]
name = "l"
to = "s"
rate = 1
)",
      {"service.s.workers=" + std::to_string(workers), std::string("duration=") + duration,
       "load.l.rate=" + std::to_string(workers * rho * 1000)});
  const RunResult result = run_scenario(s);
  return to_millis(result.recorder.spans().front().services[0].queue.mean());
}

TEST(World, MM1WaitsAsLongAsTheFormulaSays) {
  EXPECT_NEAR(queue_mean_ms(1, 0.5, "1200s") / erlang_wait(1, 0.5), 1, 0.02);
  EXPECT_NEAR(queue_mean_ms(1, 0.7, "1500s") / erlang_wait(1, 0.7), 1, 0.02);
  EXPECT_DOUBLE_EQ(erlang_wait(1, 0.7), 0.7 / 0.3);
}

TEST(World, MMkWaitsAsLongAsTheFormulaSays) {
  EXPECT_NEAR(queue_mean_ms(4, 0.8, "500s") / erlang_wait(4, 0.8), 1, 0.02);
  EXPECT_NEAR(queue_mean_ms(16, 0.85, "200s") / erlang_wait(16, 0.85), 1, 0.02);
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

/// Everything at once: faults, retries, timeouts, losses, tiers, memory.
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

// Recorded once: a compiler, a library or a machine that gives another number breaks replay.
TEST(World, TheRunIsTheSameWithEveryCompiler) {
  EXPECT_EQ(hex(run_scenario(scenario_of(kPlain)).digest), "cfa032d01c7b0207");
  EXPECT_EQ(hex(run_scenario(scenario_of(kEverything)).digest), "529c0af052b13850");
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
  EXPECT_NEAR(lost, 0.19, 0.01);  // either way: 1 - 0.9²
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
  // Whoever comes back when told finds room; whoever hammers uses up its attempts at once.
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
  // Two workers that hold on while they wait do 20 a second; two that do not, 200.
  EXPECT_NEAR(static_cast<double>(only(run_scenario(scenario_of(text))).ok()) / 10, 20, 1);
  const RunResult released = run_scenario(scenario_of(text, {"service.a.holds_worker=false"}));
  EXPECT_NEAR(static_cast<double>(only(released).ok()) / 10, 200, 3);
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
}  // namespace weir
