// Requests with modes of their own, as those of a route: each rule, each mode, and what requests
// under the configured modes find beside them.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

constexpr std::array kRules = {Rule::kDeadline, Rule::kMemory,   Rule::kPeer, Rule::kActor,
                               Rule::kBytes,    Rule::kClassCap, Rule::kLimit};
constexpr std::array kEveryMode = {RuleMode::kOff, RuleMode::kShadow, RuleMode::kEnforce};

RuleMode& mode_in(RuleModes& modes, Rule rule) {
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

RuleOverrides only(Rule rule, RuleMode mode) {
  RuleOverrides overrides;
  overrides.set(rule, mode);
  return overrides;
}

RuleOverrides all_rules(RuleMode mode) {
  RuleOverrides overrides;
  for (const Rule rule : kRules) overrides.set(rule, mode);
  return overrides;
}

std::uint64_t counted_in_shadow(const AdmissionController& controller, Reason reason) {
  return controller.scope_stats(ScopeId::kFirst, kStart).would_refuse[index_of(reason)];
}

// ---- each rule by each override by each configured mode

/// A rule, and a request that it refuses while one like it is held.
struct OverrideCase {
  Rule rule;
  Reason reason;
  AdmissionConfig config;
  AdmissionRequest request;
  double memory = 0;
};

std::vector<OverrideCase> override_cases(const AdmissionController& names) {
  std::vector<OverrideCase> cases;
  const auto add = [&cases](Rule rule, Reason reason) -> OverrideCase& {
    cases.push_back({rule, reason, plain_config(100), request_of(Priority::kNormal)});
    return cases.back();
  };
  add(Rule::kDeadline, Reason::kDeadline).request.deadline = kStart;
  add(Rule::kMemory, Reason::kMemory).memory = 0.99;
  OverrideCase& peer = add(Rule::kPeer, Reason::kPeerLimit);
  peer.config.per_peer_limit = 1;
  peer.request.peer = names.identify("node");
  OverrideCase& count = add(Rule::kActor, Reason::kActorInflight);
  count.config.inflight_max = 1;
  count.request.actor = names.identify("alice");
  OverrideCase& bytes = add(Rule::kActor, Reason::kActorBytes);
  bytes.config.bytes_max = 10;
  bytes.request.actor = names.identify("alice");
  bytes.request.bytes = 10;
  OverrideCase& actor_large = add(Rule::kActor, Reason::kTooLarge);
  actor_large.config.bytes_max = 9;
  actor_large.request.actor = names.identify("alice");
  actor_large.request.bytes = 10;
  OverrideCase& total = add(Rule::kBytes, Reason::kBytes);
  total.config.total_bytes_max = 10;
  total.request.bytes = 10;
  OverrideCase& large = add(Rule::kBytes, Reason::kTooLarge);
  large.config.total_bytes_max = 9;
  large.request.bytes = 10;
  add(Rule::kClassCap, Reason::kClassLimit).config.classes.caps[index_of(Priority::kNormal)] = 1;
  add(Rule::kLimit, Reason::kOverload).config.limit.initial_limit = 1;
  add(Rule::kLimit, Reason::kOverload).config.max_concurrent = 1;
  return cases;
}

/// How a request comes to its permit.
struct Way {
  std::string_view name;
  Result<Permit, Reason> (*ask)(AdmissionController&, const AdmissionRequest&);
};

const std::array<Way, 3> kWays = {
    Way{"try_admit",
        [](AdmissionController& c, const AdmissionRequest& r) { return c.try_admit(r, kStart); }},
    Way{"enter",
        [](AdmissionController& c, const AdmissionRequest& r) -> Result<Permit, Reason> {
          Waiter waiter;
          Entered entered = c.enter(r, waiter, kStart);
          if (entered.kind == Entered::Kind::kRefused) return unexpected(entered.reason);
          return std::move(entered.permit);
        }},
    Way{"ticket",
        [](AdmissionController& c, const AdmissionRequest& r) -> Result<Permit, Reason> {
          auto ticket = c.take_ticket(r, kStart);
          if (!ticket) return unexpected(ticket.error());
          Waiter waiter;
          Entered entered = c.enter(std::move(*ticket), waiter, kStart);
          if (entered.kind == Entered::Kind::kRefused) return unexpected(entered.reason);
          return std::move(entered.permit);
        }},
};

void check_one(const OverrideCase& c, const Way& way, std::uint32_t scopes, RuleMode global,
               const RuleMode* own) {
  const RuleMode in_force = own != nullptr ? *own : global;
  SCOPED_TRACE(std::string(name_of(c.reason)) + " by " + std::string(way.name) + ", configured " +
               std::string(name_of(global)) + ", own " +
               std::string(own != nullptr ? name_of(*own) : "none"));
  AdmissionConfig config = c.config;
  config.scopes_max = scopes;
  config.normal_wait_max = Duration(0);
  mode_in(config.modes, c.rule) = global;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest first = c.request;
  first.modes = all_rules(RuleMode::kShadow);  // it takes, whatever the configured mode is
  {
    const auto held = controller.try_admit(first, kStart);
    ASSERT_TRUE(held.has_value());
    if (c.memory > 0) controller.set_memory(c.memory, true);
    const std::uint64_t before = counted_in_shadow(controller, c.reason);
    AdmissionRequest second = c.request;
    if (own != nullptr) second.modes = only(c.rule, *own);
    const DecisionRecord record = controller.explain(second, kStart);
    auto permit = way.ask(controller, second);
    EXPECT_EQ(permit.has_value(), in_force != RuleMode::kEnforce);
    if (!permit) {
      EXPECT_EQ(permit.error(), c.reason);
    }
    EXPECT_EQ(counted_in_shadow(controller, c.reason) - before,
              in_force == RuleMode::kShadow ? 1U : 0U);
    EXPECT_EQ(record.verdict == DecisionRecord::Verdict::kAdmitted, permit.has_value());
    EXPECT_EQ(controller.stats().rejected, permit.has_value() ? 0U : 1U);
  }
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionOverrides, TheOwnModeOfARequestCountsForEveryRuleAndConfiguredMode) {
  const AdmissionController names(small_config(), Rng(1));
  for (const std::uint32_t scopes : {1U, 4U}) {  // several scopes share max_concurrent
    for (const OverrideCase& c : override_cases(names)) {
      for (const Way& way : kWays) {
        for (const RuleMode global : kEveryMode) {
          check_one(c, way, scopes, global, nullptr);
          for (const RuleMode own : kEveryMode) check_one(c, way, scopes, global, &own);
        }
      }
    }
  }
}

TEST(AdmissionOverrides, ExplainNamesTheModeOfTheRequest) {
  AdmissionController controller(plain_config(10), Rng(1));
  EXPECT_EQ(controller.modes({}), controller.config().modes);
  for (const RuleMode mode : kEveryMode) {
    EXPECT_EQ(controller.modes(only(Rule::kMemory, mode)).memory, mode);
    AdmissionRequest request = request_of(Priority::kNormal);
    request.actor = controller.identify("alice");
    request.modes = all_rules(mode);
    const DecisionRecord record = controller.explain(request, kStart);
    EXPECT_GE(record.steps().size(), 8U);
    for (const DecisionStep& step : record.steps()) EXPECT_EQ(step.mode, mode);
  }
}

// ---- beside requests under enforced rules

// What a route in shadow mode holds counts: others stay within the bound, they do not get one on
// top.
TEST(AdmissionOverrides, RequestsInShadowUseTheBoundsThatOthersAreHeldTo) {
  for (const RuleMode mode : {RuleMode::kShadow, RuleMode::kOff}) {
    for (const std::uint32_t scopes : {1U, 2U}) {
      AdmissionConfig config = plain_config(4);
      config.scopes_max = scopes;
      AdmissionController controller(config, Rng(1));
      AdmissionRequest lax = request_of(Priority::kNormal);
      lax.modes = only(Rule::kLimit, mode);
      std::vector<Permit> held = admit_all(controller, lax, 6);
      ASSERT_EQ(held.size(), 6U);
      EXPECT_EQ(controller.stats().in_flight, 6U);
      EXPECT_EQ(controller.try_admit(request_of(Priority::kHigh), kStart).error(),
                Reason::kOverload);
      held.resize(3);
      EXPECT_EQ(admit_all(controller, request_of(Priority::kNormal), 9).size(), 1U);
    }
  }
}

TEST(AdmissionOverrides, AnActorInShadowOnOneRouteIsHeldToItsBudgetOnAnother) {
  AdmissionConfig config = plain_config(100);
  config.inflight_max = 2;
  config.per_peer_limit = 2;
  config.total_bytes_max = 20;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest lax = request_of(Priority::kNormal);
  lax.actor = controller.identify("alice");
  lax.peer = controller.identify("node");
  lax.bytes = 10;
  lax.modes = all_rules(RuleMode::kShadow);
  std::vector<Permit> held = admit_all(controller, lax, 3);
  ASSERT_EQ(held.size(), 3U);
  const auto asks_with = [&](auto change) {
    AdmissionRequest strict = request_of(Priority::kNormal);
    change(strict);
    const auto permit = controller.try_admit(strict, kStart);
    return permit ? Reason::kAdmitted : permit.error();
  };
  const auto as_actor = [&](AdmissionRequest& r) { r.actor = lax.actor; };
  const auto as_peer = [&](AdmissionRequest& r) { r.peer = lax.peer; };
  const auto with_bytes = [&](AdmissionRequest& r) { r.bytes = 1; };
  EXPECT_EQ(asks_with(as_actor), Reason::kActorInflight);
  EXPECT_EQ(asks_with(as_peer), Reason::kPeerLimit);
  EXPECT_EQ(asks_with(with_bytes), Reason::kBytes);
  held.resize(1);
  EXPECT_EQ(asks_with(as_actor), Reason::kAdmitted);
  EXPECT_EQ(asks_with(as_peer), Reason::kAdmitted);
  EXPECT_EQ(asks_with(with_bytes), Reason::kAdmitted);
}

// The share of low requests that is shed is exact for those that are shed, however many others in
// shadow mode come between them.
TEST(AdmissionOverrides, TheShareOfLowThatIsShedIsExactForEnforcedRequestsAlone) {
  AdmissionConfig config = plain_config(1000);
  config.memory.low_priority_shed_ratio = 0.5;
  AdmissionController controller(config, Rng(1));
  controller.set_memory(0.9, true);
  AdmissionRequest lax = request_of(Priority::kLow);
  lax.modes = only(Rule::kMemory, RuleMode::kShadow);
  int shed = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(controller.try_admit(lax, kStart).has_value());
    shed += controller.try_admit(request_of(Priority::kLow), kStart).has_value() ? 0 : 1;
  }
  EXPECT_EQ(shed, 50);
  EXPECT_EQ(counted_in_shadow(controller, Reason::kMemory), 50U);
}

// ---- waiting

struct OneWaits : ::testing::Test {
  OneWaits() : full(admit_all(controller, request_of(Priority::kNormal), 1)) {}
  AdmissionController controller{plain_config(1), Rng(1)};
  std::vector<Permit> full;
  Waiter waiter;
};

TEST_F(OneWaits, ARequestInShadowDoesNotWaitBehindIt) {
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  AdmissionRequest lax = request_of(Priority::kNormal);
  lax.modes = only(Rule::kLimit, RuleMode::kShadow);
  Waiter other;
  Entered entered = controller.enter(lax, other, kStart);
  ASSERT_EQ(entered.kind, Entered::Kind::kAdmitted);
  full.clear();
  EXPECT_EQ(waiter.state(), Waiter::State::kWaiting);  // the other one is in flight
  std::move(entered.permit).finish(Outcome::kOk, after_ms(1));
  EXPECT_TRUE(controller.collect(waiter, after_ms(1)).has_value());
}

// The configured mode says shadow, the request's own mode enforce: only it waits.
TEST_F(OneWaits, AnOwnModeThatEnforcesWaitsWhereOthersPass) {
  AdmissionConfig config = controller.config();
  config.modes.limit = RuleMode::kShadow;
  controller.reconfigure(config);
  AdmissionRequest strict = request_of(Priority::kNormal);
  strict.modes = only(Rule::kLimit, RuleMode::kEnforce);
  ASSERT_EQ(controller.enter(strict, waiter, kStart).kind, Entered::Kind::kWaiting);
  std::vector<Permit> others = admit_all(controller, request_of(Priority::kNormal), 3);
  EXPECT_EQ(others.size(), 3U);
  others.clear();
  EXPECT_EQ(waiter.state(), Waiter::State::kWaiting);
  full.clear();
  EXPECT_TRUE(controller.collect(waiter, after_ms(1)).has_value());
}

TEST_F(OneWaits, ACapInShadowCountsAlsoThoseThatWaited) {
  AdmissionConfig config = controller.config();
  config.classes.caps[index_of(Priority::kNormal)] = 1;
  controller.reconfigure(config);
  AdmissionRequest lax = request_of(Priority::kNormal);
  lax.modes = only(Rule::kClassCap, RuleMode::kShadow);
  ASSERT_EQ(controller.enter(lax, waiter, kStart).kind, Entered::Kind::kWaiting);
  config.limit.initial_limit = config.limit.max_limit = config.max_concurrent = 2;
  controller.reconfigure(config);
  const auto permit = controller.collect(waiter, after_ms(1));
  ASSERT_TRUE(permit.has_value());
  EXPECT_EQ(counted_in_shadow(controller, Reason::kClassLimit), 1U);
}

TEST_F(OneWaits, AnOwnDeadlineModeThatDoesNotEnforceDoesNotEndTheWait) {
  AdmissionRequest lax = request_of(Priority::kNormal);
  lax.deadline = after_ms(10);
  lax.modes = only(Rule::kDeadline, RuleMode::kShadow);
  ASSERT_EQ(controller.enter(lax, waiter, kStart).kind, Entered::Kind::kWaiting);
  EXPECT_EQ(waiter.expires_at(), after_ms(50));
  EXPECT_TRUE(controller.cancel(waiter));
}

// ---- what a permit remembers

TEST(AdmissionOverrides, APermitGrowsByTheModesOfItsRequest) {
  AdmissionConfig config = plain_config(10);
  config.bytes_max = 100;
  config.total_bytes_max = 150;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  Permit strict = controller.try_admit(request, kStart).value();
  EXPECT_EQ(strict.try_grow(101).error(), Reason::kActorBytes);
  request.modes = all_rules(RuleMode::kShadow);
  Permit lax = controller.try_admit(request, kStart).value();
  EXPECT_TRUE(lax.try_grow(151).has_value());
  EXPECT_EQ(counted_in_shadow(controller, Reason::kActorBytes), 1U);
  EXPECT_EQ(counted_in_shadow(controller, Reason::kBytes), 1U);
  EXPECT_EQ(strict.try_grow(1).error(), Reason::kBytes);
  lax.shrink(151);
  EXPECT_TRUE(strict.try_grow(100).has_value());
}

TEST(AdmissionOverrides, UnitsThatWereLentComeBackByTheModeOfTheRequest) {
  AdmissionController controller(plain_config(2), Rng(1));
  AdmissionRequest lax = request_of(Priority::kNormal);
  lax.modes = only(Rule::kLimit, RuleMode::kShadow);
  Permit permit = controller.try_admit(lax, kStart).value();
  permit.give_units_back(kStart);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kNormal), 2);
  ASSERT_EQ(full.size(), 2U);
  EXPECT_TRUE(permit.try_take_units());
  EXPECT_EQ(controller.stats().in_flight, 3U);
}

TEST(AdmissionOverrides, AChangeOfBothModesInMidFlightDoesNotUnbalance) {
  for (const std::uint32_t scopes : {1U, 2U}) {
    for (const RuleMode before : kEveryMode) {
      for (const RuleMode own : kEveryMode) {
        for (const RuleMode after : kEveryMode) {
          AdmissionConfig config = plain_config(4);
          config.scopes_max = scopes;
          for (const Rule rule : kRules) mode_in(config.modes, rule) = before;
          AdmissionController controller(config, Rng(1));
          AdmissionRequest request = request_of(Priority::kNormal);
          request.peer = controller.identify("node");
          request.actor = controller.identify("alice");
          request.bytes = 100;
          request.modes = all_rules(own);
          {
            std::vector<Permit> permits = admit_all(controller, request, 3);
            ASSERT_EQ(permits.size(), 3U);
            for (const Rule rule : kRules) mode_in(config.modes, rule) = after;
            controller.reconfigure(config);
            EXPECT_TRUE(permits[0].try_grow(7));
            EXPECT_TRUE(permits[1].to_streaming(kStart));
            permits[2].give_units_back(kStart);
            static_cast<void>(permits[2].try_take_units());
            request.modes = {};
            const std::vector<Permit> more = admit_all(controller, request, 2);
          }
          EXPECT_TRUE(all_is_given_back(controller));
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline control
