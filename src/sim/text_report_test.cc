#include <gtest/gtest.h>

#include "report.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

std::string report(const std::string& verdict) {
  const Scenario s = scenario_of(std::string(kPlain) + verdict, {"story=It was a dark night."});
  return text_report(s, run_scenario(s), "weir simulate x.toml --set seed=7");
}

TEST(TextReport, TellsTheStoryTheNumbersAndTheVerdicts) {
  const std::string text =
      report("[[verdict]]\nname = \"plenty\"\nmeasure = \"goodput\"\nmin = 700\n");
  for (const char* part : {"It was a dark night.", "offered/s", "web", "normal", "api", "auto",
                           "ok   plenty: ", "[goodput ≥ 700.0/s]", "digest "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("see it again"), std::string::npos);
}

TEST(TextReport, AFailureHasItsValueAndTheCommandThatShowsItAgain) {
  const std::string text =
      report("[[verdict]]\nname = \"too much\"\nmeasure = \"goodput\"\nmin = 5000\n");
  EXPECT_NE(text.find("FAIL too much: "), std::string::npos);
  EXPECT_NE(text.find("see it again: weir simulate x.toml --set seed=7"), std::string::npos);
}

TEST(TextReport, HedgesAndMessagesHaveTheirTables) {
  const Scenario s = scenario_of(kHedgedAndSent);
  const std::string report = text_report(s, run_scenario(s), "");
  for (const char* part : {"hedging  ", "more load", "messages to", "expired",
                           "[no_hedge (overload) ≤ 0", "[latency_p99 / that of m ≤ 2.0000"}) {
    EXPECT_NE(report.find(part), std::string::npos) << part << "\n" << report;
  }
}

TEST(TextReport, VerdictsAreDescribedInFull) {
  Scenario s = scenario_of(kPlain);
  VerdictSpec v;
  v.measure = Measure::kLatencyP99;
  v.max = 80;
  v.priority = Priority::kHigh;
  v.load = 0;
  v.from = std::chrono::seconds(5);
  v.to = std::chrono::seconds(20);
  EXPECT_EQ(described(s, v), "latency_p99 ≤ 80.00 ms, class high, load web, 5s to 20s");
  v = {};
  v.measure = Measure::kRefused;
  v.reason = 4;
  v.min = 1;
  v.max = 5;
  v.to = std::chrono::seconds(20);
  EXPECT_EQ(described(s, v), "refused (peer_limit) 1 to 5");
  EXPECT_EQ(printed(v, 7), "7");
}

}  // namespace
}  // namespace weir::sim
