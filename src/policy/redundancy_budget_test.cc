#include "policy/redundancy_budget.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "odd_numbers_testing.h"

namespace weir::inline v0::inline policy {
namespace {

TEST(RedundancyBudgetRules, OptionsBecomeMillitokens) {
  EXPECT_EQ(redundancy_budget_rules(0.10, 100), RedundancyBudgetRules{});
  EXPECT_EQ(redundancy_budget_rules(0.0005, 1).deposit_millitokens, 1U);
  EXPECT_EQ(redundancy_budget_rules(-1, 1).deposit_millitokens, 0U);
  EXPECT_EQ(redundancy_budget_rules(kNaN, 1).deposit_millitokens, 0U);
  EXPECT_EQ(redundancy_budget_rules(7, 1).deposit_millitokens, 1000U);
  EXPECT_EQ(redundancy_budget_rules(0.1, 4'000'000'000U).cap_millitokens, 1'000'000'000U);
}

TEST(RedundancyBudget, TenRequestsPayForOneAttempt) {
  std::uint32_t balance = 0;
  for (int i = 0; i < 9; ++i) balance = after_deposit(balance, {});
  EXPECT_EQ(after_take(balance), std::nullopt);
  balance = after_deposit(balance, {});
  EXPECT_EQ(after_take(balance), 0U);
}

TEST(RedundancyBudget, NeverAboveTheCap) {
  const RedundancyBudgetRules rules{.deposit_millitokens = 700, .cap_millitokens = 2000};
  EXPECT_EQ(after_deposit(1999, rules), 2000U);
  EXPECT_EQ(after_refund(1999, rules), 2000U);
  EXPECT_EQ(after_deposit(5000, rules), 2000U);  // the cap was lowered
  EXPECT_EQ(after_deposit(~0U, {.deposit_millitokens = ~0U, .cap_millitokens = ~0U}), ~0U);
}

/// One step of a random schedule: what happened to requests and redundant attempts.
struct Step {
  bool request = false;
  bool taken = false;
  bool refunded = false;
};

std::vector<Step> random_schedule(std::uint64_t seed, const RedundancyBudgetRules& rules) {
  Rng rng(seed);
  std::vector<Step> steps;
  std::uint32_t balance = rules.cap_millitokens;
  std::uint32_t held = 0;  // tokens whose attempts have not written yet
  double failing = 0;
  for (int i = 0; i < 3000; ++i) {
    if (rng.chance(0.01)) failing = rng.unit();
    Step step;
    if (rng.chance(0.7)) {
      step.request = true;
      balance = after_deposit(balance, rules);
    }
    if (rng.chance(failing)) {
      if (const auto next = after_take(balance)) {
        balance = *next;
        step.taken = true;
        ++held;
      }
    }
    if (held > 0 && rng.chance(0.2)) {
      --held;
      step.refunded = rng.chance(0.3);
      if (step.refunded) balance = after_refund(balance, rules);
    }
    steps.push_back(step);
  }
  return steps;
}

TEST(RedundancyBudget, OverEveryWindowAttemptsAreBounded) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const RedundancyBudgetRules rules{.deposit_millitokens = static_cast<std::uint32_t>(seed * 20),
                                      .cap_millitokens = 10'000};
    // The bound holds for every window if it holds for the worst: largest sum of a run (Kadane).
    std::int64_t worst = 0;
    std::int64_t sum = 0;
    for (const Step& step : random_schedule(seed, rules)) {
      std::int64_t use = 0;
      if (step.taken) use += kRedundancyToken;
      if (step.refunded) use -= kRedundancyToken;
      if (step.request) use -= rules.deposit_millitokens;
      sum = std::max<std::int64_t>(sum + use, 0);
      worst = std::max(worst, sum);
    }
    EXPECT_LE(worst, std::int64_t{rules.cap_millitokens}) << "seed " << seed;
    EXPECT_GT(worst, 0);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
