// Messages of senders: queues per destination, and what their network does to them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"
#include "world.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;

const char* const kTwoDestinations = R"(
duration = "20s"
seed = 5
[[service]]
name = "near"
workers = 100
time = "1ms"
[[service]]
name = "far"
workers = 100
time = "1ms"
[[sender]]
name = "node"
queue_size = 50
overflow_size = 10
in_flight_max = 8
[[load]]
name = "near"
sender = "node"
to = "near"
rate = 100
link = { delay = "5ms" }
[[load]]
name = "far"
sender = "node"
to = "far"
rate = 100
link = { delay = "500ms" }
)";

const CallTotals& calls(const RunResult& result, std::size_t load) {
  return result.recorder.spans().front().calls.at(load);
}
const MessageTotals& messages(const RunResult& result, std::size_t service) {
  return result.recorder.spans().front().services.at(service).messages;
}

TEST(Senders, ASlowDestinationFillsItsOwnQueueOnly) {
  const RunResult result = run_scenario(scenario_of(kTwoDestinations));
  EXPECT_EQ(calls(result, 0).ok(), calls(result, 0).ended_all());
  EXPECT_LT(calls(result, 0).latency.quantile(0.99), milliseconds(12));
  EXPECT_EQ(messages(result, 0).dropped, 0U);
  EXPECT_GT(messages(result, 1).dropped, 1000U) << "8 at once over 1 s, 100 a second offered";
  EXPECT_EQ(messages(result, 1).queued_max, 60U);
}

TEST(Senders, InOneQueueItBlocksTheOthers) {
  const RunResult result = run_scenario(scenario_of(kTwoDestinations, {"sender.node.shared=true"}));
  EXPECT_GT(calls(result, 0).latency.quantile(0.5), milliseconds(1000));
  EXPECT_GT(messages(result, 0).dropped, 500U);
}

TEST(Senders, ExpiredMessagesAreNotSent) {
  const RunResult result = run_scenario(scenario_of(kTwoDestinations, {"load.far.expires=\"2s\""}));
  EXPECT_GT(messages(result, 1).expired, 300U);
  EXPECT_LT(calls(result, 1).latency.quantile(1), milliseconds(3100));
}

TEST(Senders, EveryMessageEndsOnce) {
  for (const char* seed : {"seed=1", "seed=2"}) {
    const Scenario s = scenario_of(
        kTwoDestinations, {seed, "load.far.expires=\"1s\"", "load.far.timeout=\"1500ms\"",
                           "load.far.link={delay=\"200ms\", loss=0.2}", "load.near.rate=3000",
                           "load.near.class=\"low\"", "service.near.queue_max=5",
                           "service.near.fault=[{at=\"3s\", kind=\"crash\", lasts=\"2s\"}]"});
    const RunResult result = run_scenario(s);
    const Balance& b = result.balance;
    EXPECT_EQ(b.unfinished, 0U);
    EXPECT_EQ(b.started, b.ended[0] + b.ended[1] + b.ended[2] + b.ended[3]);
    EXPECT_EQ(result.digest, run_scenario(s).digest);
  }
}

TEST(Senders, AWorldMayEndWithMessagesOnTheWay) {
  const Scenario s = scenario_of(kTwoDestinations);
  World world(s);
  world.run_until(TimePoint(milliseconds(5500)));
  EXPECT_GT(world.balance().unfinished, 50U);
}

// One message in flight at a time: what is lost delays the ones behind it.
TEST(Links, ALostMessageIsSentAgainAfterTheTimeoutWhichDoubles) {
  const char* const lossy = R"(
duration = "100s"
[[service]]
name = "api"
workers = 10
time = "0ms"
[[load]]
name = "l"
to = "api"
rate = 200
link = { delay = "10ms", loss = 0.1, retransmit = "200ms" }
)";
  const RunResult result = run_scenario(scenario_of(lossy));
  const CallTotals& calls = only(result);
  EXPECT_EQ(calls.ok(), calls.ended_all());
  const auto all = static_cast<double>(calls.ok());
  // Two messages per call: 0.9² of the calls lose none.
  EXPECT_NEAR(static_cast<double>(calls.latency.above(milliseconds(30))) / all, 0.19, 0.01);
  // Two losses of one message take 200 + 400 ms; of different ones 400.
  EXPECT_NEAR(static_cast<double>(calls.latency.above(milliseconds(500))) / all, 0.021, 0.005);
}

}  // namespace
}  // namespace weir::sim
