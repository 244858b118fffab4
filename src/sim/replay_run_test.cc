#include "replay_run.h"

#include <gtest/gtest.h>

#include "recording_testing.h"
#include "scenario_test_support.h"

namespace weir::inline v0::sim {
namespace {

constexpr const char* kFortyFixed = "policy = \"fixed\"\ninitial_limit = 40\nmax_limit = 40";

struct Past {
  explicit Past(const std::string& text)
      : scenario(scenario_of(text)), admission(*scenario.services.front().admission) {
    load = load_of_scope(recorded_run(scenario), 0);
  }
  [[nodiscard]] ReplayResult with(const ReplayCase& other) const {
    return replay_and_compare(load, admission, other);
  }
  Scenario scenario;
  AdmissionConfig admission;
  RecordedLoad load;
};

std::string numbers(const ReplayResult& result) {
  std::string text;
  for (const Deviation& one : result.deviations) {
    text += one.what + " " + std::to_string(one.recorded) + " replayed " +
            std::to_string(one.replayed) + "; ";
  }
  return text + std::to_string(result.fit.workers) + " workers";
}

TEST(ReplayRun, ASimulatedOverloadFitsWithinAFifth) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const char* limit : {kFortyFixed, "policy = \"auto\""}) {
      const Past past(overload_scenario(seed, limit));
      const ReplayResult result = past.with({.admission = past.admission});
      EXPECT_TRUE(result.fits()) << seed << " " << limit << ": " << numbers(result);
      EXPECT_GT(result.recorded.refused, 1000U);
      ASSERT_TRUE(result.forecast);
      EXPECT_EQ(result.forecast->refused, result.replayed.refused) << "the same settings";
      EXPECT_EQ(result.forecast->p99, result.replayed.p99);
    }
  }
}

TEST(ReplayRun, TheForecastOfALimitOrOfWorkersHasTheRightDirection) {
  const Past past(overload_scenario(1, kFortyFixed));
  ReplayCase lower{.admission = past.admission};
  // As many as the workers: no queue in the service. Still fewer would wait longer at the gateway.
  lower.admission.limit.initial_limit = lower.admission.limit.max_limit = 16;
  const ReplayResult less = past.with(lower);
  ASSERT_TRUE(less.forecast) << numbers(less);
  EXPECT_GT(less.forecast->refused, less.replayed.refused * 11 / 10);
  EXPECT_LT(less.forecast->p99, less.replayed.p99);
  const ReplayResult more = past.with({.admission = past.admission, .workers = 32});
  ASSERT_TRUE(more.forecast);
  EXPECT_LT(more.forecast->refused, more.replayed.refused / 2);
  EXPECT_GT(more.forecast->goodput(), more.replayed.goodput() * 1.2);
}

// What the forecast says is what then happens.
TEST(ReplayRun, TheForecastIsWhatTheSameLoadThenDoes) {
  const Past past(overload_scenario(2, kFortyFixed));
  const Past then(overload_scenario(2, "policy = \"fixed\"\ninitial_limit = 12\nmax_limit = 12"));
  const ReplayResult result = past.with({.admission = then.admission});
  ASSERT_TRUE(result.forecast) << numbers(result);
  const LoadResult real =
      result_of(then.load.decisions, then.load.from + then.load.settle, then.load.to);
  EXPECT_NEAR(static_cast<double>(result.forecast->refused), static_cast<double>(real.refused),
              0.2 * static_cast<double>(real.refused));
  EXPECT_NEAR(to_millis(result.forecast->p99), to_millis(real.p99), 0.2 * to_millis(real.p99));
}

TEST(ReplayRun, AServiceThatChangedMeanwhileIsNotForecast) {
  const Past past(overload_scenario(1, kFortyFixed) + "");
  Scenario changing = past.scenario;
  changing.services[0].faults.push_back({.at = std::chrono::seconds(15),
                                         .kind = FaultKind::kSlow,
                                         .lasts = std::chrono::seconds(10),
                                         .factor = 8});
  const RecordedLoad load = load_of_scope(recorded_run(changing), 0);
  const ReplayResult result =
      replay_and_compare(load, past.admission, ReplayCase{.admission = past.admission});
  EXPECT_FALSE(result.fits()) << numbers(result);
  EXPECT_FALSE(result.forecast);
}

TEST(ReplayRun, ForecastsAboveWhatWasSeenAreMarked) {
  const Past past(overload_scenario(1, "policy = \"fixed\"\ninitial_limit = 8\nmax_limit = 8"));
  ReplayCase higher{.admission = past.admission};
  higher.admission.limit.initial_limit = higher.admission.limit.max_limit = 100;
  const ReplayResult result = past.with(higher);
  ASSERT_TRUE(result.forecast) << numbers(result);
  EXPECT_TRUE(result.beyond_what_is_known(0));
  EXPECT_FALSE(result.beyond_what_is_known(16)) << "it was stated";
}

}  // namespace
}  // namespace weir::inline v0::sim
