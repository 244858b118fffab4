#include "weir/policy/class_admission.h"

#include <gtest/gtest.h>

#include "weir/policy/operator_state.h"

namespace weir::inline v0::inline policy {
namespace {

ClassCounts counts(std::uint32_t critical, std::uint32_t high, std::uint32_t normal,
                   std::uint32_t low) {
  return {{critical, high, normal, low}};
}

Reason decide(const ClassCounts& c, Priority p, std::uint32_t limit, const ClassRules& rules = {},
              bool hedge = false, std::uint32_t cost = 1) {
  const std::uint32_t bound = share_bound(limit, rules.share_permille(p, hedge));
  const std::uint32_t cap = rules.caps[index_of(p)];
  return decide_class(c, {p, hedge, charged_cost(cost, bound, cap)}, bound, cap);
}

TEST(ClassAdmission, ShareBoundRoundsUpAndIsAtLeastOne) {
  EXPECT_EQ(share_bound(4, 750), 3U);
  EXPECT_EQ(share_bound(4, 900), 4U);
  EXPECT_EQ(share_bound(128, 900), 116U);
  EXPECT_EQ(share_bound(128, 500), 64U);
  EXPECT_EQ(share_bound(1, 500), 1U);
  EXPECT_EQ(share_bound(0, 1000), 1U);
  EXPECT_EQ(share_bound(kClassUnitsMax, 1000), kClassUnitsMax);
}

TEST(ClassAdmission, AtALimitOfFourExactlyThreeLowAreAdmittedAndHighGetsTheLastSeat) {
  EXPECT_EQ(decide(counts(0, 0, 0, 2), Priority::kLow, 4), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 0, 0, 3), Priority::kLow, 4), Reason::kOverload);
  EXPECT_EQ(decide(counts(0, 0, 0, 3), Priority::kHigh, 4), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 1, 0, 3), Priority::kHigh, 4), Reason::kOverload);
}

TEST(ClassAdmission, CriticalIsNeverRefusedAndNeverCounted) {
  EXPECT_EQ(decide(counts(9999, 50, 50, 50), Priority::kCritical, 4), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(9999, 0, 0, 0), Priority::kLow, 4), Reason::kAdmitted);
}

TEST(ClassAdmission, LowIsShedBeforeNormalBeforeHigh) {
  for (std::uint32_t filled = 0; filled <= 100; ++filled) {
    const ClassCounts c = counts(0, 0, filled, 0);
    const bool low = decide(c, Priority::kLow, 100) == Reason::kAdmitted;
    const bool normal = decide(c, Priority::kNormal, 100) == Reason::kAdmitted;
    const bool high = decide(c, Priority::kHigh, 100) == Reason::kAdmitted;
    EXPECT_LE(low, normal) << filled;
    EXPECT_LE(normal, high) << filled;
    EXPECT_EQ(low, filled < 75) << filled;
    EXPECT_EQ(normal, filled < 90) << filled;
    EXPECT_EQ(high, filled < 100) << filled;
  }
}

TEST(ClassAdmission, PerPriorityLimitsAreIndependentWhenSharesAreWhole) {
  ClassRules rules;
  rules.caps = {0, 500, 300, 200};
  rules.share_normal_permille = rules.share_low_permille = 1000;
  EXPECT_EQ(decide(counts(0, 0, 0, 200), Priority::kLow, 1000, rules), Reason::kClassLimit);
  EXPECT_EQ(decide(counts(0, 0, 299, 200), Priority::kNormal, 1000, rules), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 0, 300, 200), Priority::kNormal, 1000, rules), Reason::kClassLimit);
  EXPECT_EQ(decide(counts(0, 499, 300, 200), Priority::kHigh, 1000, rules), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 500, 300, 200), Priority::kHigh, 1000, rules), Reason::kClassLimit);
  EXPECT_EQ(decide(counts(7, 500, 300, 200), Priority::kCritical, 1000, rules), Reason::kAdmitted);
}

TEST(ClassAdmission, HedgesAreAdmittedUpToHalf) {
  EXPECT_EQ(decide(counts(0, 49, 0, 0), Priority::kHigh, 100, {}, true), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 50, 0, 0), Priority::kHigh, 100, {}, true), Reason::kOverload);
}

TEST(ClassAdmission, CostWeighsARequest) {
  EXPECT_EQ(decide(counts(0, 95, 0, 0), Priority::kHigh, 100, {}, false, 5), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 96, 0, 0), Priority::kHigh, 100, {}, false, 5), Reason::kOverload);
}

TEST(ClassAdmission, ARequestDearerThanItsShareIsServedAlone) {
  EXPECT_EQ(decide(counts(0, 0, 0, 0), Priority::kLow, 10, {}, false, 4000), Reason::kAdmitted);
  EXPECT_EQ(decide(counts(0, 1, 0, 0), Priority::kLow, 10, {}, false, 4000), Reason::kOverload);
}

TEST(ClassAdmission, ValidateNamesKeyValueAndRange) {
  EXPECT_TRUE(ClassRules{}.validate().empty());
  ClassRules bad;
  bad.caps = {1, kClassUnitsMax + 1, 0, 0};
  bad.share_low_permille = 0;
  bad.share_hedge_permille = 1001;
  const ConfigErrors errors = bad.validate();
  ASSERT_EQ(errors.size(), 4U);
  EXPECT_EQ(errors[1].key, "class_cap_high");
  EXPECT_EQ(errors[1].value, "16384");
  EXPECT_EQ(errors[1].allowed, "0 to 16383");
}

TEST(OperatorState, FollowsWhichClassIsAtItsBound) {
  EXPECT_EQ(operator_state(counts(0, 0, 0, 74), {}, 100), OperatorState::kHealthy);
  EXPECT_EQ(operator_state(counts(0, 0, 0, 75), {}, 100), OperatorState::kPressured);
  EXPECT_EQ(operator_state(counts(0, 15, 0, 75), {}, 100), OperatorState::kOverloaded);
  EXPECT_EQ(operator_state(counts(500, 0, 0, 0), {}, 100), OperatorState::kHealthy);
}

TEST(OperatorState, ClassCapsCountToo) {
  ClassRules rules;
  rules.caps = {0, 0, 10, 5};
  EXPECT_EQ(operator_state(counts(0, 0, 0, 5), rules, 100), OperatorState::kPressured);
  EXPECT_EQ(operator_state(counts(0, 0, 10, 0), rules, 100), OperatorState::kOverloaded);
}

TEST(Priority, NamesRoundTripAndUnknownIsNothing) {
  for (const Priority p : kPriorities) EXPECT_EQ(priority_named(name_of(p)), p);
  EXPECT_EQ(priority_named("CRITICAL"), std::nullopt);
  EXPECT_EQ(priority_named(""), std::nullopt);
}

TEST(Reason, NamesAreStableAndRoundTrip) {
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    const auto r = static_cast<Reason>(i);
    EXPECT_EQ(reason_named(name_of(r)), r);
  }
  EXPECT_EQ(facts_of(Reason::kDeadline).http, 504);
  EXPECT_EQ(facts_of(Reason::kTooLarge).http, 413);
  EXPECT_FALSE(facts_of(Reason::kTooLarge).pushback);
  EXPECT_EQ(facts_of(Reason::kActorInflight).http, 429);
  EXPECT_EQ(facts_of(Reason::kBytes).http, 503);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
