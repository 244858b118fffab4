#include "fixed_limit.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

TEST(Fixed, StaysWhateverItSees) {
  FixedLimit fixed({.policy = LimitKind::kFixed, .initial_limit = 42});
  for (const std::uint32_t overloads : {0U, 1U, 1000U}) {
    const LimitDecision decision = fixed.on_window({.sample_count = 100,
                                                    .latency_avg = std::chrono::seconds(9),
                                                    .in_flight = 42,
                                                    .in_flight_max = 42,
                                                    .overload_count = overloads});
    EXPECT_EQ(decision.limit, 42U);
    EXPECT_EQ(decision.reason, LimitReason::kConfigured);
  }
}

TEST(Fixed, NewBoundsBringANewLimit) {
  FixedLimit fixed({.policy = LimitKind::kFixed, .initial_limit = 42});
  fixed.set_bounds({.min = 8, .initial = 64, .max = 1024});
  EXPECT_EQ(fixed.limit(), 64U);
  fixed.set_bounds({.min = 8, .initial = 64, .max = 32});
  EXPECT_EQ(fixed.limit(), 32U);
  fixed.set_bounds({.min = 0, .initial = 0, .max = 0});
  EXPECT_EQ(fixed.limit(), 1U);
}

TEST(Fixed, FactoryMakesIt) {
  const auto policy = make_limit_policy({.policy = LimitKind::kFixed, .initial_limit = 5}, Rng(1));
  EXPECT_EQ(policy->name(), "fixed");
  EXPECT_EQ(policy->limit(), 5U);
  EXPECT_EQ(policy->window_rules().duration, std::chrono::seconds(1));
}

}  // namespace
}  // namespace weir::inline v0::inline policy
