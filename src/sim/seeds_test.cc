#include "seeds.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

TEST(Seeds, TheWorstIsTheOneNearestToOrBeyondItsBound) {
  SeedsVerdict verdict;
  verdict.spec.min = 10;
  for (const double value : {12.0, 9.0, 11.0}) {
    verdict.results.push_back({verdict.spec, value, true, value >= 10});
  }
  EXPECT_EQ(verdict.worst(), 1U);
  EXPECT_DOUBLE_EQ(verdict.median(), 11);
  EXPECT_EQ(verdict.failed(), 1U);
  verdict.results.push_back({verdict.spec, 0, false, false});  // it never happened
  EXPECT_EQ(verdict.worst(), 3U);
}

TEST(Seeds, TheFirstSeedIsTheScenariosOwn) {
  const Scenario s = scenario_of(
      std::string(kPlain) + "[[verdict]]\nmeasure = \"goodput\"\nmin = 1\n", {"duration=3s"});
  const SeedsResult all = run_seeds(s, 3);
  ASSERT_EQ(all.verdicts.size(), 1U);
  ASSERT_EQ(all.verdicts[0].results.size(), 3U);
  EXPECT_DOUBLE_EQ(all.verdicts[0].results[0].value, run_scenario(s).verdicts[0].value);
  EXPECT_NE(all.verdicts[0].results[1].value, all.verdicts[0].results[0].value);
  EXPECT_TRUE(all.passed());
  EXPECT_NE(seeds_text(s, all).find("3 seeds from 7"), std::string::npos);
  EXPECT_NE(seeds_json(s, all).find("\"worst_seed\""), std::string::npos);
}

TEST(Seeds, OneBadSeedFailsTheScenario) {
  const Scenario s = scenario_of(
      std::string(kPlain) + "[[verdict]]\nmeasure = \"goodput\"\nmin = 100000\n", {"duration=3s"});
  const SeedsResult all = run_seeds(s, 2);
  EXPECT_FALSE(all.passed());
  EXPECT_NE(seeds_text(s, all).find("2 of 2 seeds fail"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
