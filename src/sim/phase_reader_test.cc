#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

const std::string kPhase = std::string(kPlain) +
                           "[[phase]]\nname = \"busy\"\nfrom = \"5s\"\nto = \"15s\"\n"
                           "oracle = { limit = 12, goodput = 790 }\n";

TEST(PhaseReader, APhaseDemandsTheGoodputOfItsOracleAndTheLatencyOfAnIdleService) {
  const Scenario s = scenario_of(kPhase);
  ASSERT_EQ(s.phases.size(), 1U);
  EXPECT_EQ(s.phases[0].oracle_limit, 12U);
  ASSERT_EQ(s.verdicts.size(), 2U);
  EXPECT_EQ(s.verdicts[0].measure, Measure::kGoodput);
  EXPECT_DOUBLE_EQ(*s.verdicts[0].min, 0.95 * 790);
  EXPECT_EQ(s.verdicts[0].from, std::chrono::seconds(5));
  EXPECT_EQ(s.verdicts[1].measure, Measure::kDispatchP99);
  EXPECT_NEAR(*s.verdicts[1].max, 3 * 46.05, 0.5);
}

TEST(PhaseReader, ALightPhaseRefusesNobody) {
  const Scenario s = scenario_of(kPhase + "light = true\nlatency_max = 0\n");
  ASSERT_EQ(s.verdicts.size(), 2U);
  EXPECT_EQ(s.verdicts[1].measure, Measure::kShedRatio);
  EXPECT_DOUBLE_EQ(*s.verdicts[1].max, 0.001);
}

TEST(PhaseReader, WithoutAnOracleGoodputIsNotJudged) {
  const Scenario s =
      scenario_of(std::string(kPlain) + "[[phase]]\nname = \"all\"\nunloaded = \"10ms\"\n");
  ASSERT_EQ(s.verdicts.size(), 1U);
  EXPECT_DOUBLE_EQ(*s.verdicts[0].max, 30);
  EXPECT_EQ(s.phases[0].to, s.duration);
}

TEST(PhaseReader, APhaseBeyondTheEndIsAFault) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  const auto read =
      read_scenario_text(kPhase, "test.toml", std::vector<std::string>{"duration=10s"}, none);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(printed(read.error()).find("from < to"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
