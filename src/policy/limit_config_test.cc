#include "weir/policy/limit_config.h"

#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/policy/class_admission.h"

#include "odd_numbers_testing.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr std::uint32_t kWordMax = std::numeric_limits<std::uint32_t>::max();

template <class F>
std::vector<std::string> bad_keys(F&& change) {
  LimitConfig config;
  change(config);
  std::vector<std::string> keys;
  for (const ConfigError& error : config.validate()) keys.push_back(error.key);
  return keys;
}
using Keys = std::vector<std::string>;

TEST(LimitConfig, DefaultsAreValidAndAsDocumented) {
  const LimitConfig config;
  EXPECT_TRUE(config.validate().empty());
  EXPECT_EQ(config.policy, LimitKind::kAuto);
  EXPECT_EQ(config.initial_limit, 128U);
  EXPECT_EQ(config.min_limit, 0U);
  EXPECT_EQ(config.effective_min(), 1U);
  EXPECT_EQ(LimitConfig{.policy = LimitKind::kVegas}.effective_min(), 8U);
  EXPECT_EQ(config.max_limit, 1024U);
  EXPECT_EQ(config.window_duration, std::chrono::seconds(1));
  EXPECT_EQ(config.vegas_alpha, 2.0);
  EXPECT_EQ(config.vegas_beta, 8.0);
}

TEST(LimitConfig, EveryLimiterOfTheListIsMadeUnderItsNameAndStartsAtTheInitialLimit) {
  for (std::size_t i = 0; i < kLimitKindNames.size(); ++i) {
    const auto kind = static_cast<LimitKind>(i);
    const auto policy = make_limit_policy({.policy = kind, .initial_limit = 77}, Rng(1));
    EXPECT_EQ(policy->name(), kLimitKindNames[i]);
    EXPECT_EQ(policy->limit(), 77U);
    EXPECT_EQ(limit_kind_named(kLimitKindNames[i]), kind);
  }
}

TEST(LimitConfig, EveryCountHasBothBounds) {
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.min_limit = 0; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.min_limit = 1025; }), Keys{"min_limit"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.min_limit = 1024; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.initial_limit = 0; }), Keys{"initial_limit"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.initial_limit = 1025; }), Keys{"initial_limit"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.initial_limit = 1; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.max_limit = 0; }), Keys{"max_limit"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.max_limit = kClassUnitsMax + 1; }), Keys{"max_limit"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.max_limit = kClassUnitsMax; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.max_limit = kWordMax; }), Keys{"max_limit"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.max_limit = 100; }), Keys{"initial_limit"});
}

TEST(LimitConfig, WindowHasBothBounds) {
  using namespace std::chrono_literals;
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.window_duration = 10ms; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.window_duration = 60s; }), Keys{});
  for (const Duration bad : {Duration(9999us), Duration(0), Duration(-1s), Duration(60s + 1ns),
                             Duration::max(), Duration::min()}) {
    EXPECT_EQ(bad_keys([bad](LimitConfig& c) { c.window_duration = bad; }),
              Keys{"window_duration_ms"});
  }
}

TEST(LimitConfig, VegasBandMustBeABand) {
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.vegas_alpha = c.vegas_beta = 0; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.vegas_alpha = 8.5; }), Keys{"vegas_beta"});
  for (const double bad : {-0.1, 16384.0, kNaN, kInfinity}) {
    const Keys keys = bad_keys([bad](LimitConfig& c) { c.vegas_alpha = bad; });
    ASSERT_FALSE(keys.empty()) << bad;
    EXPECT_EQ(keys.front(), "vegas_alpha") << bad;
  }
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.vegas_beta = kNaN; }), Keys{"vegas_beta"});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.vegas_beta = kInfinity; }), Keys{"vegas_beta"});
}

TEST(LimitConfig, BackoffMustShrink) {
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.aimd_backoff = 0.1; }), Keys{});
  EXPECT_EQ(bad_keys([](LimitConfig& c) { c.aimd_backoff = 0.99; }), Keys{});
  for (const double bad : {0.0, 0.09, 1.0, -1.0, kNaN}) {
    EXPECT_EQ(bad_keys([bad](LimitConfig& c) { c.aimd_backoff = bad; }), Keys{"aimd_backoff"});
  }
}

TEST(LimitConfig, ErrorNamesValueAndRange) {
  LimitConfig config;
  config.initial_limit = 5000;
  const ConfigErrors errors = config.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].value, "5000");
  EXPECT_EQ(errors[0].allowed, "1 to 1024");
}

TEST(LimitConfig, StartBelowTheMinimumIsMeant) {
  LimitConfig config;
  config.initial_limit = 4;
  config.min_limit = 8;
  EXPECT_TRUE(config.validate().empty());
  EXPECT_EQ(config.effective_min(), 4U);
  EXPECT_EQ(config.bounds().min, 4U);
}

TEST(LimitKind, NamesRoundTrip) {
  for (std::size_t i = 0; i < kLimitKindNames.size(); ++i) {
    const auto kind = static_cast<LimitKind>(i);
    EXPECT_EQ(limit_kind_named(name_of(kind)), kind);
  }
  EXPECT_EQ(limit_kind_named("Vegas"), std::nullopt);
}

TEST(LimitReason, NamesAreStableAndDistinct) {
  std::set<std::string_view> names;
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(LimitReason::kConfigured); ++i) {
    names.insert(name_of(static_cast<LimitReason>(i)));
  }
  EXPECT_EQ(names.size(), 13U);
  EXPECT_EQ(name_of(LimitReason::kHold), "hold");
  EXPECT_EQ(name_of(LimitReason::kConfigured), "configured");
  EXPECT_EQ(name_of(LimitReason::kAtFloor), "at_floor");
}

}  // namespace
}  // namespace weir::inline v0::inline policy
