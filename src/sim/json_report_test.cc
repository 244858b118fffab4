#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

TEST(JsonReport, SaysWhatTheRunCameTo) {
  const Scenario s =
      scenario_of(std::string(kPlain) + "[[verdict]]\nmeasure = \"goodput\"\nmin = 1\nmax = 2\n");
  RunResult result = run_scenario(s);
  result.wall_seconds = 0.5;
  const auto json = nlohmann::json::parse(json_report(s, result, false));
  EXPECT_EQ(json["seed"], 7);
  EXPECT_FALSE(json["passed"].get<bool>());
  EXPECT_EQ(json["verdicts"][0]["measure"], "goodput");
  EXPECT_FALSE(json["verdicts"][0]["holds"].get<bool>());
  EXPECT_EQ(json["loads"][0]["class"], "normal");
  EXPECT_EQ(json["services"][0]["limiter"], "auto");
  EXPECT_GT(json["services"][0]["refused"]["overload"], 0);
  EXPECT_DOUBLE_EQ(json["run"]["requests_per_second"].get<double>(),
                   json["attempts"].get<double>() / 0.5);
  EXPECT_FALSE(json.contains("series"));
}

TEST(JsonReport, HedgesAndMessagesBelongToTheirService) {
  const Scenario s = scenario_of(kHedgedAndSent);
  const auto json = nlohmann::json::parse(json_report(s, run_scenario(s), false));
  const auto& api = json["services"][0];
  EXPECT_GT(api["hedging"]["hedges"], 0);
  EXPECT_GT(api["hedging"]["not_sent"]["not_needed"], 100);
  EXPECT_GT(api["messages"]["offered"], 100);
  EXPECT_FALSE(json["services"][1].contains("hedging"));
}

TEST(JsonReport, WithoutAClockItIsTheSameEveryTime) {
  const Scenario s = scenario_of(kPlain);
  const std::string first = json_report(s, run_scenario(s), true);
  EXPECT_EQ(first, json_report(s, run_scenario(s), true));
  const auto json = nlohmann::json::parse(first);
  EXPECT_FALSE(json.contains("run"));
  EXPECT_EQ(json["series"]["services"][0]["limit"].size(), 400U);
}

TEST(JsonReport, AListOfReportsIsJsonToo) {
  EXPECT_EQ(nlohmann::json::parse(json_list({"{\"a\": 1}", "{}"})).size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(json_list({})).size(), 0U);
}

}  // namespace
}  // namespace weir::sim
