#include "aimd_limit.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

LimitConfig aimd_at(std::uint32_t limit) {
  return {.policy = LimitKind::kAimd, .initial_limit = limit};
}

LimitSample used(std::uint32_t in_flight_max) {
  return {.sample_count = 10, .in_flight_max = in_flight_max};
}

LimitSample overloaded() {
  return {.sample_count = 10, .in_flight_max = 100, .overload_count = 1};
}

TEST(Aimd, GrowsByOneWhenHalfTheLimitWasUsed) {
  AimdLimit aimd(aimd_at(100));
  LimitDecision decision = aimd.on_window(used(49));
  EXPECT_EQ(decision.limit, 100U);
  EXPECT_EQ(decision.reason, LimitReason::kNotUsed);
  decision = aimd.on_window(used(50));
  EXPECT_EQ(decision.limit, 101U);
  EXPECT_EQ(decision.reason, LimitReason::kGrow);
}

TEST(Aimd, OneOverloadBacksOffOnceAWindow) {
  AimdLimit aimd(aimd_at(100));
  LimitSample window = overloaded();
  window.overload_count = 50;
  const LimitDecision decision = aimd.on_window(window);
  EXPECT_EQ(decision.limit, 90U);
  EXPECT_EQ(decision.reason, LimitReason::kOverload);
}

TEST(Aimd, OverloadWithoutSamplesCounts) {
  AimdLimit aimd(aimd_at(100));
  EXPECT_EQ(aimd.on_window({.overload_count = 3}).limit, 90U);
}

TEST(Aimd, SmallLimitsStillShrinkAndStopAtTheFloor) {
  LimitConfig config = aimd_at(10);
  config.min_limit = 2;
  config.aimd_backoff = 0.99;
  AimdLimit aimd(config);
  for (std::uint32_t expected = 9; expected >= 2; --expected) {
    EXPECT_EQ(aimd.on_window(overloaded()).limit, expected);
  }
  const LimitDecision decision = aimd.on_window(overloaded());
  EXPECT_EQ(decision.limit, 2U);
  EXPECT_EQ(decision.reason, LimitReason::kAtFloor);
}

TEST(Aimd, ShrinksEvenByAFactorThatDoesNot) {
  LimitConfig config = aimd_at(100);
  config.aimd_backoff = 1.0;  // validate() refuses it; the promise holds anyway
  AimdLimit aimd(config);
  EXPECT_EQ(aimd.on_window(overloaded()).limit, 99U);
}

TEST(Aimd, IsNeverStuckAtTheFloor) {
  LimitConfig config = aimd_at(1);
  config.min_limit = 1;
  AimdLimit aimd(config);
  EXPECT_EQ(aimd.on_window(overloaded()).limit, 1U);
  EXPECT_EQ(aimd.on_window(used(1)).limit, 2U);
}

TEST(Aimd, EmptyWindowDecidesNothing) {
  AimdLimit aimd(aimd_at(100));
  EXPECT_EQ(aimd.on_window({}).reason, LimitReason::kNoSamples);
  EXPECT_EQ(aimd.limit(), 100U);
}

TEST(Aimd, StopsAtTheCeiling) {
  LimitConfig config = aimd_at(16);
  config.max_limit = 16;
  AimdLimit aimd(config);
  EXPECT_EQ(aimd.on_window(used(16)).reason, LimitReason::kAtCeiling);
}

TEST(Aimd, NewBoundsApplyAtOnce) {
  AimdLimit aimd(aimd_at(100));
  aimd.set_bounds({.min = 8, .initial = 50, .max = 60});
  EXPECT_EQ(aimd.limit(), 60U);
}

TEST(Aimd, StaysInBoundsWhateverItSees) {
  Rng rng(81);
  for (int run = 0; run < 200; ++run) {
    LimitConfig config;
    config.max_limit = static_cast<std::uint32_t>(rng.between(1, 16383));
    config.initial_limit = static_cast<std::uint32_t>(rng.between(1, config.max_limit));
    config.min_limit = static_cast<std::uint32_t>(rng.between(1, config.max_limit));
    config.aimd_backoff = 0.1 + rng.unit() * 0.89;
    ASSERT_TRUE(config.validate().empty());
    AimdLimit aimd(config);
    for (int w = 0; w < 300; ++w) {
      const std::uint32_t before = aimd.limit();
      const bool bad = rng.chance(0.1);
      const LimitDecision decision = aimd.on_window(
          {.sample_count = static_cast<std::uint32_t>(rng.below(3)),
           .in_flight_max = static_cast<std::uint32_t>(rng.below(20000)),
           .overload_count = bad ? static_cast<std::uint32_t>(rng.between(1, 1000)) : 0U});
      ASSERT_GE(decision.limit, config.effective_min());
      ASSERT_LE(decision.limit, config.max_limit);
      ASSERT_TRUE(bad ? decision.limit <= before : decision.limit >= before);
    }
  }
}

TEST(Aimd, FactoryMakesIt) {
  const auto policy = make_limit_policy(aimd_at(77), Rng(1));
  EXPECT_EQ(policy->name(), "aimd");
  EXPECT_EQ(policy->limit(), 77U);
  EXPECT_EQ(policy->window_rules().duration, std::chrono::seconds(1));
}

}  // namespace
}  // namespace weir::inline v0::inline policy
