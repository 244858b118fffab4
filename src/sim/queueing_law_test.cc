// Compared with known formulas: waiting times of M/M/1 and M/M/k.

#include <string>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

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

TEST(QueueingLaw, MM1WaitsAsLongAsTheFormulaSays) {
  EXPECT_NEAR(queue_mean_ms(1, 0.5, "1200s") / erlang_wait(1, 0.5), 1, 0.02);
  EXPECT_NEAR(queue_mean_ms(1, 0.7, "1500s") / erlang_wait(1, 0.7), 1, 0.02);
  EXPECT_DOUBLE_EQ(erlang_wait(1, 0.7), 0.7 / 0.3);
}

TEST(QueueingLaw, MMkWaitsAsLongAsTheFormulaSays) {
  EXPECT_NEAR(queue_mean_ms(4, 0.8, "500s") / erlang_wait(4, 0.8), 1, 0.02);
  EXPECT_NEAR(queue_mean_ms(16, 0.85, "200s") / erlang_wait(16, 0.85), 1, 0.02);
}

}  // namespace
}  // namespace weir::sim
