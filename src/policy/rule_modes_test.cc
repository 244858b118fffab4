#include "weir/policy/rule_modes.h"

#include <array>

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

constexpr std::array kAllRules = {Rule::kDeadline, Rule::kMemory,   Rule::kPeer, Rule::kActor,
                                  Rule::kBytes,    Rule::kClassCap, Rule::kLimit};
constexpr std::array kAllModes = {RuleMode::kOff, RuleMode::kShadow, RuleMode::kEnforce};

RuleMode& mode_field(RuleModes& modes, Rule rule) {
  switch (rule) {
    case Rule::kDeadline:
      return modes.deadline;
    case Rule::kMemory:
      return modes.memory;
    case Rule::kPeer:
      return modes.peer;
    case Rule::kActor:
      return modes.actor;
    case Rule::kBytes:
      return modes.bytes;
    case Rule::kClassCap:
      return modes.class_cap;
    case Rule::kLimit:
      break;
  }
  return modes.limit;
}

TEST(RuleOverrides, EachRuleHasItsOwnModeAndTheOthersInherit) {
  EXPECT_FALSE(RuleOverrides().any());
  for (const Rule rule : kAllRules) {
    for (const RuleMode mode : kAllModes) {
      RuleOverrides overrides;
      overrides.set(rule, RuleMode::kShadow);
      overrides.set(rule, mode);  // the last one counts
      EXPECT_TRUE(overrides.any());
      for (const RuleMode inherited : kAllModes) {
        RuleModes before;
        for (const Rule each : kAllRules) mode_field(before, each) = inherited;
        RuleModes expected = before;
        mode_field(expected, rule) = mode;
        EXPECT_EQ(overrides.over(before), expected);
        for (const Rule each : kAllRules) {
          EXPECT_EQ(overrides.has(each), each == rule);
          EXPECT_EQ(overrides.of(each, inherited), each == rule ? mode : inherited);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
