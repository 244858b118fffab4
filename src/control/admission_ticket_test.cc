// Admission in two parts: checks 1 to 6 with the head of a request, its place when it is complete.
#include <array>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using Kind = Entered::Kind;

AdmissionRequest billed_request(const AdmissionController& controller, Priority priority) {
  AdmissionRequest request = request_of(priority);
  request.peer = controller.identify("node");
  request.actor = controller.identify("alice");
  request.bytes = 100;
  return request;
}

TEST(AdmissionTicket, HoldsActorPeerAndBytesButNoUnitOfTheLimit) {
  static_assert(sizeof(Ticket) == 72);
  static_assert(!std::is_copy_constructible_v<Ticket>);
  static_assert(std::is_nothrow_move_constructible_v<Ticket>);
  AdmissionController controller(plain_config(1), Rng(1));
  Ticket ticket =
      controller.take_ticket(billed_request(controller, Priority::kNormal), kStart).value();
  EXPECT_EQ(controller.stats().in_flight, 0U);
  EXPECT_EQ(controller.stats().bytes, 100U);
  EXPECT_EQ(controller.top_actors(1).at(0).in_flight, 1U);
  EXPECT_EQ(controller.top_peers(1).at(0).in_flight, 1U);
  EXPECT_EQ(controller.stats().admitted, 0U);
  // The whole limit is free for others meanwhile.
  const auto other = controller.try_admit(request_of(Priority::kNormal), kStart);
  EXPECT_TRUE(other.has_value());
}

TEST(AdmissionTicket, BecomesAPermitThatHoldsWhatTheTicketHeld) {
  AdmissionController controller(small_config(), Rng(1));
  Waiter waiter;
  Ticket ticket =
      controller.take_ticket(billed_request(controller, Priority::kNormal), kStart).value();
  EXPECT_TRUE(ticket.try_grow(50));
  ticket.shrink(20);
  Entered entered = controller.enter(std::move(ticket), waiter, after_ms(900));
  EXPECT_FALSE(ticket);  // NOLINT(bugprone-use-after-move): that is what is tested
  ASSERT_EQ(entered.kind, Kind::kAdmitted);
  EXPECT_EQ(entered.permit.bytes(), 130U);
  EXPECT_EQ(entered.permit.granted_at(), after_ms(900));  // the body's time is not a sample
  EXPECT_EQ(controller.stats().in_flight, 1U);
  EXPECT_EQ(controller.top_actors(1).at(0).in_flight, 1U);
  EXPECT_EQ(controller.stats().admitted, 1U);
  std::move(entered.permit).finish(Outcome::kOk, after_ms(901));
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionTicket, GivesEverythingBackWhenItIsDestroyedAndCountsNothing) {
  AdmissionController controller(small_config(), Rng(1));
  const AdmissionRequest request = billed_request(controller, Priority::kHigh);
  {
    Ticket ticket = controller.take_ticket(request, kStart).value();
    ticket = controller.take_ticket(request, kStart).value();  // destroys the first
    EXPECT_EQ(controller.top_actors(1).at(0).in_flight, 1U);
    const Ticket moved = std::move(ticket);
    EXPECT_EQ(controller.stats().bytes, 100U);
  }
  EXPECT_TRUE(all_is_given_back(controller));
  EXPECT_EQ(controller.stats().admitted, 0U);
  EXPECT_EQ(controller.stats().rejected, 0U);
}

TEST(AdmissionTicket, IsRefusedForAFullClassAtOnceAndGivesBackWhatItTook) {
  AdmissionConfig config = plain_config(10);
  config.classes.caps[index_of(Priority::kLow)] = 1;
  AdmissionController controller(config, Rng(1));
  const Permit full = controller.try_admit(request_of(Priority::kLow), kStart).value();
  const auto refused = controller.take_ticket(billed_request(controller, Priority::kLow), kStart);
  EXPECT_EQ(refused.error(), Reason::kClassLimit);
  EXPECT_EQ(controller.stats().bytes, 0U);
  EXPECT_TRUE(controller.top_actors(1).empty());
  EXPECT_EQ(controller.stats().rejected, 1U);
}

// Two that were both within the cap when they began: it is taken by the first that is complete.
TEST(AdmissionTicket, CannotExceedTheClassCapWithTheSecondPart) {
  AdmissionConfig config = plain_config(10);
  config.classes.caps[index_of(Priority::kLow)] = 1;
  AdmissionController controller(config, Rng(1));
  Waiter waiter;
  Ticket first = controller.take_ticket(request_of(Priority::kLow), kStart).value();
  Ticket second = controller.take_ticket(request_of(Priority::kLow), kStart).value();
  const Entered in = controller.enter(std::move(second), waiter, kStart);
  EXPECT_EQ(in.kind, Kind::kAdmitted);
  const Entered out = controller.enter(std::move(first), waiter, kStart);
  EXPECT_EQ(out.kind, Kind::kRefused);
  EXPECT_EQ(out.reason, Reason::kClassLimit);
}

TEST(AdmissionTicket, IsRefusedIfItsDeadlinePassedMeanwhileUnlessItIsCritical) {
  AdmissionController controller(small_config(), Rng(1));
  Waiter waiter;
  for (const bool critical : {false, true}) {
    AdmissionRequest request =
        billed_request(controller, critical ? Priority::kCritical : Priority::kNormal);
    request.deadline = after_ms(10);
    Ticket ticket = controller.take_ticket(request, kStart).value();
    const Entered entered = controller.enter(std::move(ticket), waiter, after_ms(10));
    EXPECT_EQ(entered.kind, critical ? Kind::kAdmitted : Kind::kRefused);
    EXPECT_EQ(entered.reason, critical ? Reason::kAdmitted : Reason::kDeadline);
  }
  EXPECT_TRUE(all_is_given_back(controller));
  EXPECT_EQ(controller.stats().critical_shed, 0U);
}

TEST(AdmissionTicket, InShadowModeIsCountedOnceForItsDeadline) {
  AdmissionConfig config = small_config();
  config.modes.deadline = RuleMode::kShadow;
  AdmissionController controller(config, Rng(1));
  Waiter waiter;
  for (const TimePoint begun : {kStart, after_ms(20)}) {  // before and after the deadline
    AdmissionRequest request = request_of(Priority::kNormal);
    request.deadline = after_ms(10);
    Ticket ticket = controller.take_ticket(request, begun).value();
    EXPECT_EQ(controller.enter(std::move(ticket), waiter, after_ms(30)).kind, Kind::kAdmitted);
  }
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(stats.would_refuse[index_of(Reason::kDeadline)], 2U);
}

TEST(AdmissionTicket, WaitsAndIsGrantedOrCancelledLikeAnyRequest) {
  AdmissionController controller(plain_config(1), Rng(1));
  Permit full = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  ReadyFlag ready;
  Waiter waiter(ReadyFlag::set, &ready);
  const AdmissionRequest request = billed_request(controller, Priority::kNormal);
  const auto enter = [&] {
    Ticket ticket = controller.take_ticket(request, kStart).value();
    return controller.enter(std::move(ticket), waiter, kStart).kind;
  };
  ASSERT_EQ(enter(), Kind::kWaiting);
  EXPECT_TRUE(controller.cancel(waiter));
  EXPECT_EQ(controller.stats().bytes, 0U);
  ASSERT_EQ(enter(), Kind::kWaiting);
  std::move(full).finish(Outcome::kOk, after_ms(1));
  EXPECT_EQ(ready.calls.load(), 1);
  Permit permit = controller.collect(waiter, after_ms(1)).value();
  EXPECT_EQ(permit.bytes(), 100U);
  permit = Permit();
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionTicket, StaysBalancedWhenEveryRuleChangesBetweenTheParts) {
  const AdmissionConfig enforced = small_config();
  AdmissionConfig off = small_config();
  off.modes = {RuleMode::kOff, RuleMode::kOff,    RuleMode::kOff,   RuleMode::kOff,
               RuleMode::kOff, RuleMode::kShadow, RuleMode::kShadow};
  for (const bool begins_enforced : {true, false}) {
    AdmissionController controller(begins_enforced ? enforced : off, Rng(1));
    Waiter waiter;
    const AdmissionRequest request = billed_request(controller, Priority::kNormal);
    Ticket used = controller.take_ticket(request, kStart).value();
    {
      const Ticket dropped = controller.take_ticket(request, kStart).value();
      controller.reconfigure(begins_enforced ? off : enforced);
    }
    Entered entered = controller.enter(std::move(used), waiter, kStart);
    EXPECT_EQ(entered.kind, Kind::kAdmitted);
    entered.permit = Permit();
    EXPECT_TRUE(all_is_given_back(controller));
  }
}

TEST(AdmissionTicketDeathTest, MustNotOutliveItsController) {
  EXPECT_DEATH(
      {
        Ticket leaked;
        AdmissionController controller(small_config(), Rng(1));
        leaked =
            controller.take_ticket(billed_request(controller, Priority::kNormal), kStart).value();
      },
      "WEIR_ASSERT");
}

// ---- property: in two parts at one moment, the decision is the one of enter()

struct Twin {
  explicit Twin(const AdmissionConfig& config) : controller(config, Rng(7)) {}
  AdmissionController controller;
  std::vector<Permit> held;
  std::vector<std::unique_ptr<Waiter>> waiting;
};

AdmissionConfig drawn_config(Rng& rng) {
  AdmissionConfig config = plain_config(static_cast<std::uint32_t>(rng.between(2, 12)));
  config.max_concurrent = static_cast<std::uint32_t>(rng.between(1, 12));
  config.inflight_max = static_cast<std::uint32_t>(rng.between(1, 6));
  config.per_peer_limit = static_cast<std::uint32_t>(rng.between(1, 6));
  config.bytes_max = static_cast<std::uint64_t>(rng.between(50, 200));
  config.total_bytes_max = static_cast<std::uint64_t>(rng.between(0, 400));
  config.waiting_max = static_cast<std::uint32_t>(rng.between(0, 4));
  config.classes.caps[index_of(Priority::kNormal)] = static_cast<std::uint32_t>(rng.between(0, 5));
  config.classes.caps[index_of(Priority::kLow)] = static_cast<std::uint32_t>(rng.between(0, 3));
  const auto mode = [&rng] { return rng.chance(0.7) ? RuleMode::kEnforce : RuleMode::kShadow; };
  config.modes = {mode(), mode(), mode(), mode(), mode(), mode(), mode()};
  return config;
}

AdmissionRequest drawn_request(Rng& rng, const AdmissionController& controller, TimePoint now) {
  AdmissionRequest request = request_of(kPriorities[rng.below(kPriorityCount)]);
  constexpr std::array<std::string_view, 3> kNames = {"a", "b", "c"};
  if (rng.chance(0.7)) request.actor = controller.identify(kNames[rng.below(3)]);
  if (rng.chance(0.3)) request.peer = controller.identify(kNames[rng.below(3)]);
  request.source = rng.below(3);
  request.bytes = static_cast<std::uint64_t>(rng.between(0, 80));
  request.cost = static_cast<std::uint32_t>(rng.between(1, 3));
  request.hedge = rng.chance(0.1);
  if (rng.chance(0.2)) request.deadline = now + Duration(rng.between(-3, 3) * 1'000'000);
  return request;
}

void settle(Twin& twin, Entered entered, std::unique_ptr<Waiter> waiter) {
  if (entered.kind == Kind::kAdmitted) twin.held.push_back(std::move(entered.permit));
  if (entered.kind == Kind::kWaiting) twin.waiting.push_back(std::move(waiter));
}

void end_some(Twin& twin, std::size_t which, TimePoint now) {
  if (!twin.held.empty()) {
    const std::size_t i = which % twin.held.size();
    std::swap(twin.held[i], twin.held.back());
    std::move(twin.held.back()).finish(Outcome::kOk, now);
    twin.held.pop_back();
  }
  twin.controller.expire(now);
  std::erase_if(twin.waiting, [&](const std::unique_ptr<Waiter>& waiter) {
    if (waiter->state() == Waiter::State::kWaiting) return false;
    auto decided = twin.controller.collect(*waiter, now);
    if (decided) twin.held.push_back(std::move(decided).value());
    return true;
  });
}

void expect_equal(const Twin& one, const Twin& two) {
  const ScopeStats a = one.controller.scope_stats(ScopeId::kFirst, kStart);
  const ScopeStats b = two.controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(a.in_flight, b.in_flight);
  EXPECT_EQ(a.waiting, b.waiting);
  EXPECT_EQ(a.refused, b.refused);
  EXPECT_EQ(a.would_refuse, b.would_refuse);
  EXPECT_EQ(one.controller.stats().bytes, two.controller.stats().bytes);
  EXPECT_EQ(one.controller.stats().admitted, two.controller.stats().admitted);
  EXPECT_EQ(one.controller.stats().rejected, two.controller.stats().rejected);
}

TEST(AdmissionTicketProperty, DecidesInTwoPartsWhatEnterDecidesInOne) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const AdmissionConfig config = drawn_config(rng);
    Twin one(config);
    Twin two(config);
    TimePoint now = kStart;
    for (int step = 0; step < 200; ++step) {
      now += Duration(rng.between(0, 2'000'000));
      if (rng.chance(0.05)) {
        const double usage = rng.unit();
        one.controller.set_memory(usage, true);
        two.controller.set_memory(usage, true);
      }
      const AdmissionRequest request = drawn_request(rng, one.controller, now);
      auto waiter = std::make_unique<Waiter>();
      Entered whole = one.controller.enter(request, *waiter, now);
      const Kind kind = whole.kind;
      const Reason reason = whole.reason;
      settle(one, std::move(whole), std::move(waiter));

      waiter = std::make_unique<Waiter>();
      auto ticket = two.controller.take_ticket(request, now);
      Entered parts = ticket ? two.controller.enter(std::move(*ticket), *waiter, now)
                             : Entered{.kind = Kind::kRefused, .reason = ticket.error()};
      ASSERT_EQ(parts.kind, kind) << "seed " << seed << " step " << step;
      ASSERT_EQ(parts.reason, reason) << "seed " << seed << " step " << step;
      settle(two, std::move(parts), std::move(waiter));

      if (rng.chance(0.5)) {
        const std::size_t which = rng.below(1000);
        end_some(one, which, now);
        end_some(two, which, now);
      }
      expect_equal(one, two);
    }
    for (Twin* twin : {&one, &two}) {
      for (const auto& waiter : twin->waiting) EXPECT_TRUE(twin->controller.cancel(*waiter));
      twin->held.clear();
      EXPECT_TRUE(all_is_given_back(twin->controller));
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline control
