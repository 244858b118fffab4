#include "effective_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;

config::Config base() {
  config::Config config;
  for (const char* name : {"app", "other"}) {
    upstream::UpstreamConfig upstream;
    upstream.name = name;
    upstream.endpoints = {*upstream::parse_source("127.0.0.1:1")};
    config.upstreams.push_back(upstream);
  }
  RouteConfig route;
  route.upstream = "app";
  config.routes = {route, route};
  config.routes[0].path_prefix = "/a";
  config.routes[0].modes.limit = RuleMode::kEnforce;
  return config;
}
Override shadow(std::string rule) {
  return {.kind = OverrideKind::kShadow, .target = std::move(rule)};
}
Override cap(std::uint32_t limit, std::string upstream = "app") {
  return {.kind = OverrideKind::kCap, .upstream = std::move(upstream), .limit = limit};
}
config::Config changed_by(const config::Config& config, const Override& one) {
  return with_overrides(config, {&one, 1});
}

TEST(EffectiveConfig, WithoutOverridesIsTheConfiguration) {
  EXPECT_EQ(with_overrides(base(), {}), base());
  EXPECT_EQ(changed_by(base(), {.kind = OverrideKind::kDrain, .upstream = "app"}), base());
  EXPECT_EQ(changed_by(base(), {.kind = OverrideKind::kLog}), base());
}

TEST(EffectiveConfig, AShadowedRuleRefusesNothingAlsoWhereARouteEnforcesIt) {
  config::Config want = base();
  want.admission.modes.limit = RuleMode::kShadow;
  want.routes[0].modes.limit = RuleMode::kShadow;
  EXPECT_EQ(changed_by(base(), shadow("limit")), want);
}

TEST(EffectiveConfig, EveryRuleCanBeShadowed) {
  for (const char* rule : {"deadline", "memory", "peer", "actor", "bytes", "class_cap", "limit"}) {
    const config::Config now = changed_by(base(), shadow(rule));
    ASSERT_NE(mode_of(now.admission.modes, rule), nullptr) << rule;
    EXPECT_EQ(*mode_of(now.admission.modes, rule), RuleMode::kShadow) << rule;
    EXPECT_THAT(rule_names(), HasSubstr(rule));
    EXPECT_EQ(now.validate(), ConfigErrors{});
  }
  EXPECT_EQ(mode_of(RuleModes{}, "nothing"), nullptr);
}

TEST(EffectiveConfig, AShadowNeverSwitchesARuleOn) {
  config::Config config = base();
  config.admission.modes.limit = RuleMode::kOff;
  config.routes[0].modes.limit = RuleMode::kOff;
  EXPECT_EQ(changed_by(config, shadow("limit")), config);
  EXPECT_THAT(why_ended(shadow("limit"), config), HasSubstr("does not enforce"));
  config.routes[1].modes.limit = RuleMode::kEnforce;
  EXPECT_EQ(why_ended(shadow("limit"), config), "");
}

TEST(EffectiveConfig, ACapLowersTheBoundsOfItsUpstreamOnly) {
  const config::Config now = changed_by(base(), cap(40));
  EXPECT_EQ(now.limit_of(now.upstreams[0]).max_limit, 40U);
  EXPECT_EQ(now.limit_of(now.upstreams[0]).initial_limit, 40U);
  EXPECT_EQ(now.limit_of(now.upstreams[1]), base().limit_of(base().upstreams[1]));
  EXPECT_EQ(now.validate(), ConfigErrors{});
}

TEST(EffectiveConfig, AnyCapThatFitsLeavesAValidConfiguration) {
  for (const LimitKind policy : {LimitKind::kFixed, LimitKind::kAimd, LimitKind::kAuto}) {
    config::Config config = base();
    config.admission.limit = {
        .policy = policy, .initial_limit = 10, .min_limit = 20, .max_limit = 50};
    ASSERT_EQ(config.validate(), ConfigErrors{});
    for (std::uint32_t limit = 1; limit < 60; ++limit) {
      const bool fits = limit >= 10 && limit < 50;
      EXPECT_EQ(why_ended(cap(limit), config).empty(), fits) << limit;
      if (fits) {
        EXPECT_EQ(changed_by(config, cap(limit)).validate(), ConfigErrors{}) << limit;
      }
    }
  }
}

TEST(EffectiveConfig, AnOverrideEndsWithWhatItActsOn) {
  config::Config config = base();
  const Override drain{.kind = OverrideKind::kDrain, .upstream = "other"};
  Override log{.kind = OverrideKind::kLog, .route = config.routes[1], .route_number = 1};
  EXPECT_EQ(why_ended(drain, config), "");
  EXPECT_EQ(why_ended(cap(40, "other"), config), "");
  EXPECT_EQ(why_ended(log, config), "");
  config.upstreams.pop_back();
  std::swap(config.routes[0], config.routes[1]);
  EXPECT_THAT(why_ended(drain, config), HasSubstr("other"));
  EXPECT_THAT(why_ended(cap(40, "other"), config), HasSubstr("other"));
  EXPECT_THAT(why_ended(log, config), HasSubstr("another"));
  log.route_number = 2;
  EXPECT_FALSE(why_ended(log, config).empty());
  EXPECT_EQ(why_ended({.kind = OverrideKind::kLog}, config), "") << "an actor needs no route";
}

TEST(EffectiveConfig, DrainsAndLogsAreFoundAmongOverrides) {
  const auto address = *io::parse_socket_name("127.0.0.1:1");
  const auto focus = std::make_shared<LogFocus>(LogFocus::Of{}, 1);
  const std::vector<Override> all = {
      cap(40),
      {.kind = OverrideKind::kDrain, .upstream = "app", .endpoint = address},
      {.kind = OverrideKind::kLog, .focus = focus}};
  EXPECT_EQ(drained_of(all, "app"), std::vector{address});
  EXPECT_TRUE(drained_of(all, "other").empty());
  EXPECT_EQ(focus_of(all), focus);
  EXPECT_EQ(focus_of({}), nullptr);
}

}  // namespace
}  // namespace weir::gateway
