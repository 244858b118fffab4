#include "compare.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

TEST(Compare, KnowsItsLimiters) {
  EXPECT_EQ(limiter_named("vegas")->kind, LimitKind::kVegas);
  EXPECT_EQ(limiter_named("fixed:64")->fixed, 64U);
  EXPECT_EQ(name_of(*limiter_named("fixed:64")), "fixed:64");
  EXPECT_EQ(name_of(*limiter_named("auto")), "auto");
  for (const char* wrong : {"", "best", "fixed:", "fixed:0", "fixed:99999", "fixed:4x", "auto:3"}) {
    EXPECT_FALSE(limiter_named(wrong).has_value()) << wrong;
  }
}

TEST(Compare, PutsTheLimiterInPlace) {
  const Scenario s = scenario_of(kPlain);
  const Scenario changed = with_limiter(s, *limiter_named("fixed:2000"));
  EXPECT_EQ(changed.services[0].admission->limit.policy, LimitKind::kFixed);
  EXPECT_EQ(changed.services[0].admission->limit.initial_limit, 2000U);
  EXPECT_TRUE(changed.services[0].admission->limit.validate().empty());
}

TEST(Compare, NoneTakesAdmissionAway) {
  const Scenario s = scenario_of(kPlain);
  const LimiterChoice none = *limiter_named("none");
  EXPECT_EQ(name_of(none), "none");
  const Scenario bare = with_limiter(s, none);
  EXPECT_FALSE(bare.services[0].admission.has_value());
  const RunResult result = run_scenario(bare);
  EXPECT_EQ(result.balance.ended[1], 0U);  // no request is refused
  EXPECT_NE(compare_table(s, {row_of(bare, result, "none")}).find(" - "), std::string::npos);
}

TEST(Compare, RowsShowWhatFailed) {
  const Scenario s = scenario_of(std::string(kPlain) +
                                 "[[verdict]]\nname = \"v\"\nmeasure = \"goodput\"\nmin = 9999\n");
  const CompareRow row = row_of(s, run_scenario(s), "auto");
  EXPECT_EQ(row.verdicts, 1U);
  EXPECT_EQ(row.verdicts_held, 0U);
  EXPECT_EQ(row.failed, "v");
  EXPECT_NEAR(row.goodput, 800, 40);
  const std::string table = compare_table(s, {row});
  EXPECT_NE(table.find("0/1  v"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
