// Rules in shadow mode, rules that are off, and rules that change while requests are in flight.
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

RuleModes every_rule(RuleMode mode) {
  return {.deadline = mode,
          .memory = mode,
          .peer = mode,
          .actor = mode,
          .bytes = mode,
          .class_cap = mode,
          .limit = mode};
}

/// The number of requests that would have been refused, by reason.
std::uint64_t would(const AdmissionController& controller, Reason reason) {
  return controller.scope_stats(ScopeId::kFirst, kStart).would_refuse[index_of(reason)];
}

// Each row breaks exactly one rule, with the second request of its kind.
struct Case {
  Reason reason;
  AdmissionConfig config;
  AdmissionRequest request;
};

std::vector<Case> one_case_per_rule(const AdmissionController& names) {
  std::vector<Case> cases;
  const auto add = [&cases](Reason reason) -> Case& {
    cases.push_back({reason, plain_config(100), request_of(Priority::kNormal)});
    return cases.back();
  };
  Case& late = add(Reason::kDeadline);
  late.request.deadline = kStart;
  Case& peer = add(Reason::kPeerLimit);
  peer.config.per_peer_limit = 1;
  peer.request.peer = names.identify("node");
  Case& count = add(Reason::kActorInflight);
  count.config.inflight_max = 1;
  count.request.actor = names.identify("alice");
  Case& bytes = add(Reason::kActorBytes);
  bytes.config.bytes_max = 10;
  bytes.request.actor = names.identify("alice");
  bytes.request.bytes = 10;
  Case& total = add(Reason::kBytes);
  total.config.total_bytes_max = 10;
  total.request.bytes = 10;
  Case& large = add(Reason::kTooLarge);
  large.config.total_bytes_max = 9;
  large.request.bytes = 10;
  Case& cap = add(Reason::kClassLimit);
  cap.config.classes.caps[index_of(Priority::kNormal)] = 1;
  Case& limit = add(Reason::kOverload);
  limit.config.limit.initial_limit = 1;
  Case& process = add(Reason::kOverload);
  process.config.max_concurrent = 1;
  return cases;
}

TEST(AdmissionModes, EveryRuleEnforcedRefusesByItsName) {
  const AdmissionController names(small_config(), Rng(1));
  for (const Case& c : one_case_per_rule(names)) {
    AdmissionController controller(c.config, Rng(1));
    const std::vector<Permit> first = admit_all(controller, c.request, 1);
    const auto second = controller.try_admit(c.request, kStart);
    ASSERT_FALSE(second.has_value()) << name_of(c.reason);
    EXPECT_EQ(second.error(), c.reason) << name_of(c.reason);
    EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).refused[index_of(c.reason)],
              controller.stats().rejected);
  }
}

TEST(AdmissionModes, ShadowCountsWhatItWouldRefuseAndRefusesNothing) {
  const AdmissionController names(small_config(), Rng(1));
  for (const std::uint32_t scopes : {1U, 4U}) {  // several scopes share max_concurrent
    for (const Case& c : one_case_per_rule(names)) {
      AdmissionConfig config = c.config;
      config.scopes_max = scopes;
      config.modes = every_rule(RuleMode::kShadow);
      AdmissionController controller(config, Rng(1));
      {
        const std::vector<Permit> permits = admit_all(controller, c.request, 5);
        EXPECT_EQ(permits.size(), 5U) << name_of(c.reason);
        const bool every_time = c.reason == Reason::kDeadline || c.reason == Reason::kTooLarge;
        EXPECT_EQ(would(controller, c.reason), every_time ? 5U : 4U) << name_of(c.reason);
        EXPECT_EQ(controller.stats().rejected, 0U);
      }
      EXPECT_TRUE(all_is_given_back(controller)) << name_of(c.reason);
    }
  }
}

TEST(AdmissionModes, MemoryInShadowCountsAndRefusesNothing) {
  AdmissionConfig config = plain_config(100);
  config.modes.memory = RuleMode::kShadow;
  AdmissionController controller(config, Rng(1));
  controller.set_memory(0.99, true);
  EXPECT_EQ(admit_all(controller, request_of(Priority::kNormal), 3).size(), 3U);
  EXPECT_EQ(would(controller, Reason::kMemory), 3U);
  EXPECT_EQ(admit_all(controller, request_of(Priority::kHigh), 3).size(), 3U);
  EXPECT_EQ(would(controller, Reason::kMemory), 3U);
}

TEST(AdmissionModes, OffNeitherRefusesNorCounts) {
  const AdmissionController names(small_config(), Rng(1));
  for (const Case& c : one_case_per_rule(names)) {
    AdmissionConfig config = c.config;
    config.modes = every_rule(RuleMode::kOff);
    AdmissionController controller(config, Rng(1));
    controller.set_memory(0.99, true);
    {
      const std::vector<Permit> permits = admit_all(controller, c.request, 5);
      EXPECT_EQ(permits.size(), 5U) << name_of(c.reason);
      for (std::size_t i = 0; i < kReasonCount; ++i) {
        EXPECT_EQ(would(controller, static_cast<Reason>(i)), 0U);
      }
    }
    EXPECT_TRUE(all_is_given_back(controller)) << name_of(c.reason);
  }
}

TEST(AdmissionModes, GrowthInShadowCountsAndGoesOn) {
  AdmissionConfig config = plain_config(10);
  config.bytes_max = 100;
  config.total_bytes_max = 150;
  config.modes = every_rule(RuleMode::kShadow);
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  Permit permit = controller.try_admit(request, kStart).value();
  EXPECT_TRUE(permit.try_grow(100));
  EXPECT_EQ(would(controller, Reason::kActorBytes), 0U);
  EXPECT_TRUE(permit.try_grow(50));
  EXPECT_EQ(would(controller, Reason::kActorBytes), 1U);
  EXPECT_EQ(would(controller, Reason::kBytes), 0U);
  EXPECT_TRUE(permit.try_grow(1));
  EXPECT_EQ(would(controller, Reason::kBytes), 1U);
  EXPECT_EQ(controller.stats().bytes, 151U);
  permit.shrink(151);
  EXPECT_EQ(controller.stats().bytes, 0U);
}

// A deadline in shadow mode must not end a wait either.
TEST(AdmissionModes, ADeadlineThatIsNotEnforcedDoesNotShortenAWait) {
  AdmissionConfig config = plain_config(1);
  config.modes.deadline = RuleMode::kShadow;
  AdmissionController controller(config, Rng(1));
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  AdmissionRequest request = request_of(Priority::kHigh);
  request.deadline = kStart;
  Waiter waiter;
  ASSERT_EQ(controller.enter(request, waiter, kStart).kind, Entered::Kind::kWaiting);
  EXPECT_EQ(would(controller, Reason::kDeadline), 1U);
  EXPECT_EQ(waiter.expires_at(), after_ms(100));
  controller.expire(after_ms(100));
  EXPECT_EQ(controller.collect(waiter, after_ms(100)).error(), Reason::kOverload);
}

// ---- changes while requests are in flight

AdmissionRequest with_everything(const AdmissionController& controller) {
  AdmissionRequest request = request_of(Priority::kNormal);
  request.peer = controller.identify("node");
  request.actor = controller.identify("alice");
  request.bytes = 100;
  return request;
}

void set_modes(AdmissionController& controller, const RuleModes& modes) {
  AdmissionConfig config = controller.config();
  config.modes = modes;
  controller.reconfigure(config);
}

TEST(AdmissionModes, AModeChangeInMidFlightDoesNotUnbalance) {
  constexpr std::array kModes = {RuleMode::kOff, RuleMode::kShadow, RuleMode::kEnforce};
  for (const std::uint32_t scopes : {1U, 2U}) {
    for (const RuleMode before : kModes) {
      for (const RuleMode after : kModes) {
        AdmissionConfig config = plain_config(4);
        config.scopes_max = scopes;
        config.modes = every_rule(before);
        AdmissionController controller(config, Rng(1));
        {
          std::vector<Permit> permits = admit_all(controller, with_everything(controller), 4);
          ASSERT_EQ(permits.size(), 4U);
          EXPECT_TRUE(permits[1].to_streaming(kStart));
          set_modes(controller, every_rule(after));
          EXPECT_TRUE(permits[0].try_grow(7));
          EXPECT_TRUE(permits[1].try_grow(7));
          EXPECT_TRUE(permits[2].to_streaming(kStart));
          permits[0].shrink(50);
          for (const Permit& more : admit_all(controller, with_everything(controller), 2)) {
            EXPECT_TRUE(more);
          }
          std::move(permits[3]).finish(Outcome::kOk, after_ms(1));
        }
        EXPECT_TRUE(all_is_given_back(controller))
            << kRuleModeNames[static_cast<std::size_t>(before)] << " to "
            << kRuleModeNames[static_cast<std::size_t>(after)];
      }
    }
  }
}

// What a rule counted in shadow mode is what it finds when it is enforced.
TEST(AdmissionModes, ARuleThatIsSwitchedOnFindsTrueNumbers) {
  AdmissionConfig config = plain_config(2);
  config.inflight_max = 2;
  config.modes.limit = config.modes.actor = RuleMode::kShadow;
  AdmissionController controller(config, Rng(1));
  std::vector<Permit> permits = admit_all(controller, with_everything(controller), 4);
  ASSERT_EQ(permits.size(), 4U);
  set_modes(controller, RuleModes{});
  EXPECT_EQ(controller.try_admit(request_of(Priority::kHigh), kStart).error(), Reason::kOverload);
  permits.pop_back();
  permits.pop_back();
  EXPECT_EQ(controller.try_admit(request_of(Priority::kHigh), kStart).error(), Reason::kOverload);
  EXPECT_EQ(controller.try_admit(with_everything(controller), kStart).error(),
            Reason::kActorInflight);
  permits.pop_back();
  EXPECT_TRUE(controller.try_admit(with_everything(controller), kStart).has_value());
}

// max_concurrent over several scopes, with the rule switched from enforce to shadow: a waiter is
// served, not refused by the bound that is no longer enforced.
TEST(AdmissionModes, AWaiterIsServedWhenTheSharedBoundStopsBeingEnforced) {
  AdmissionConfig config = plain_config(1);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId other = controller.add_scope("other", config.limit);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  EXPECT_EQ(controller.try_admit(request_of(Priority::kHigh, other), kStart).error(),
            Reason::kOverload);
  RuleModes modes;
  modes.limit = RuleMode::kShadow;
  set_modes(controller, modes);
  EXPECT_TRUE(controller.collect(waiter, kStart).has_value());
}

}  // namespace
}  // namespace weir::inline v0::inline control
