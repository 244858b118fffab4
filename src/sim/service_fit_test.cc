#include "service_fit.h"

#include <gtest/gtest.h>

#include "recording_testing.h"
#include "scenario_test_support.h"

namespace weir::inline v0::sim {
namespace {

ServiceFit fit_of(const std::string& scenario) {
  return fit_service(load_of_scope(recorded_run(scenario_of(scenario)), 0));
}

TEST(ServiceFit, FindsTheWorkersOfASaturatedService) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const ServiceFit fit =
        fit_of(overload_scenario(seed, "policy = \"fixed\"\ninitial_limit = 40\nmax_limit = 40"));
    EXPECT_TRUE(fit.saturated);
    EXPECT_NEAR(fit.workers, 16, 2) << seed;
    EXPECT_NEAR(to_millis(fit.mean), 19.5, 1) << seed;
    EXPECT_NEAR(fit.drain_max, 16 / 0.0195, 60) << seed;
  }
}

// Refusals alone say nothing: with 8 in flight, 16 workers have no queue.
TEST(ServiceFit, KnowsOnlyALowerBoundOfAServiceThatWasNeverSaturated) {
  const ServiceFit fit =
      fit_of(overload_scenario(1, "policy = \"fixed\"\ninitial_limit = 8\nmax_limit = 8"));
  EXPECT_FALSE(fit.saturated);
  EXPECT_GE(fit.workers, 6U);
  EXPECT_LE(fit.workers, 9U);
}

TEST(ServiceFit, NothingWasServed) {
  EXPECT_EQ(fit_service({}).samples, 0U);
  RecordedLoad refused;
  refused.to = std::chrono::seconds(1);
  refused.decisions.resize(100);
  EXPECT_EQ(fit_service(refused).samples, 0U);
}

}  // namespace
}  // namespace weir::inline v0::sim
