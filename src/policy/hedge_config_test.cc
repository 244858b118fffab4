#include "weir/policy/hedge_config.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

TEST(HedgeConfig, HasTheDocumentedDefaults) {
  const HedgeConfig config;
  EXPECT_TRUE(config.enabled);
  EXPECT_EQ(config.budget_pct, 0.10);
  EXPECT_EQ(config.max_budget_tokens, 100U);
  EXPECT_EQ(config.min_delay, milliseconds(1));
  EXPECT_EQ(config.max_delay, milliseconds(50));
  EXPECT_EQ(config.default_delay, milliseconds(5));
  EXPECT_EQ(config.alpha, 0.1);
  EXPECT_EQ(config.quantile, 0.95);
  EXPECT_TRUE(config.validate().empty());
}

TEST(HedgeConfig, NamesTheOptionThatIsWrong) {
  struct Case {
    std::string key;
    std::function<void(HedgeConfig&)> spoil;
  };
  const Case cases[] = {
      {"budget_pct", [](HedgeConfig& c) { c.budget_pct = 1.5; }},
      {"max_budget_tokens", [](HedgeConfig& c) { c.max_budget_tokens = 2'000'000; }},
      {"min_delay_ms", [](HedgeConfig& c) { c.min_delay = milliseconds(51); }},
      {"default_delay_ms", [](HedgeConfig& c) { c.default_delay = milliseconds(51); }},
      {"alpha", [](HedgeConfig& c) { c.alpha = 0; }},
      {"quantile", [](HedgeConfig& c) { c.quantile = 1; }},
      {"window_ms", [](HedgeConfig& c) { c.window = milliseconds(10); }},
  };
  for (const Case& wrong : cases) {
    HedgeConfig config;
    wrong.spoil(config);
    const ConfigErrors errors = config.validate();
    ASSERT_FALSE(errors.empty()) << wrong.key;
    EXPECT_EQ(errors.front().key, wrong.key);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
