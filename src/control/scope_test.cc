// One scope: windows in, limit out; policies and bounds that change at run time.
#include "scope.h"

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/policy/limit_config.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A policy that returns what the test sets and records its input.
class ScriptedPolicy final : public LimitPolicy {
 public:
  explicit ScriptedPolicy(std::uint32_t limit, std::vector<LimitSample>* seen = nullptr)
      : next{.limit = limit}, seen_(seen) {}
  LimitDecision on_window(const LimitSample& window) noexcept override {
    if (seen_ != nullptr) seen_->push_back(window);
    return next;
  }
  [[nodiscard]] std::uint32_t limit() const noexcept override { return next.limit; }
  [[nodiscard]] WindowRules window_rules() const noexcept override {
    return {.duration = window, .duration_min = window};
  }
  [[nodiscard]] BaselineReport exchange(const BaselineNews& news) noexcept override {
    window = milliseconds(200);
    return {.full = true, .limit = news.full};
  }
  void set_bounds(const LimitBounds& bounds) noexcept override { next.limit = bounds.max; }
  [[nodiscard]] std::string_view name() const noexcept override { return "scripted"; }

  LimitDecision next;
  Duration window = seconds(1);

 private:
  std::vector<LimitSample>* seen_;
};

class ScopeTest : public ::testing::Test {
 protected:
  ScopeTest() {
    auto made = std::make_unique<ScriptedPolicy>(10, &seen);
    policy = made.get();
    scope = std::make_unique<Scope>("upstream-a", std::move(made), process);
    scope->set_rules(ClassRules{}, RuleModes{}, 0);
    EXPECT_FALSE(scope->step_limiter(kStart, change));  // opens the first window
  }
  bool step(std::int64_t ms) { return scope->step_limiter(after_ms(ms), change); }
  void finish(Duration latency, TimePoint at) {
    static_cast<void>(scope->window.record(at - latency, at));
  }
  [[nodiscard]] std::uint32_t fill(Priority priority) {
    std::uint32_t taken = 0;
    while (scope->gate.try_take({priority}, {}, false).take == Take::kTaken) ++taken;
    return taken;
  }

  ProcessGate process;
  std::vector<LimitSample> seen;
  ScriptedPolicy* policy = nullptr;
  std::unique_ptr<Scope> scope;
  LimitChange change;
};

TEST_F(ScopeTest, AWindowThatIsDueMovesTheLimitAndSaysWhatChanged) {
  finish(milliseconds(7), after_ms(500));
  policy->next = {.limit = 13,
                  .reason = LimitReason::kGrow,
                  .queue_estimate = 1.5,
                  .baseline = milliseconds(5)};
  EXPECT_FALSE(step(999));
  EXPECT_TRUE(seen.empty());
  EXPECT_TRUE(step(1000));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].sample_count, 1U);
  EXPECT_EQ(seen[0].opened_at, kStart);
  EXPECT_EQ(change.scope, "upstream-a");
  EXPECT_EQ(change.old_limit, 10U);
  EXPECT_EQ(change.new_limit, 13U);
  EXPECT_EQ(change.reason, LimitReason::kGrow);
  EXPECT_EQ(change.queue_estimate, 1.5);
  EXPECT_EQ(change.latency_avg, milliseconds(7));
  EXPECT_EQ(change.latency_min, milliseconds(5));
  const ScopeStats stats = scope->stats(kStart);
  EXPECT_EQ(stats.limit, 13U);
  EXPECT_EQ(stats.queue_estimate, 1.5);
  EXPECT_EQ(stats.latency_avg, milliseconds(7));
  EXPECT_EQ(stats.baseline, milliseconds(5));
  EXPECT_EQ(stats.limit_reason, LimitReason::kGrow);
  EXPECT_EQ(fill(Priority::kHigh), 13U);
}

TEST_F(ScopeTest, AnUnchangedLimitIsNoEventButItsReasonIsPublished) {
  policy->next.reason = LimitReason::kAtFloor;
  EXPECT_FALSE(step(1000));
  EXPECT_EQ(seen.size(), 1U);
  EXPECT_EQ(scope->stats(kStart).limit_reason, LimitReason::kAtFloor);
}

TEST_F(ScopeTest, AverageLatencyStaysThatOfTheLastWindowThatHadSamples) {
  finish(milliseconds(7), after_ms(500));
  EXPECT_FALSE(step(1000));
  EXPECT_FALSE(step(2000));
  EXPECT_EQ(scope->stats(kStart).latency_avg, milliseconds(7));
}

TEST_F(ScopeTest, TheClassesSharesFollowTheLimitAtOnce) {
  policy->next.limit = 100;
  EXPECT_TRUE(step(1000));
  EXPECT_EQ(scope->gate.bound(Priority::kLow), 75U);
  EXPECT_EQ(fill(Priority::kLow), 75U);
  policy->next.limit = 20;
  EXPECT_TRUE(step(2000));
  EXPECT_EQ(fill(Priority::kHigh), 0U);  // 75 in flight must finish first
  EXPECT_EQ(scope->stats(kStart).in_flight, 75U);
}

TEST_F(ScopeTest, WhatThePolicyAsksToLeaveOutIsLeftOut) {
  policy->next.samples_from = after_ms(1500);
  EXPECT_FALSE(step(1000));
  static_cast<void>(scope->window.record(after_ms(1400), after_ms(1600)));
  static_cast<void>(scope->window.record(after_ms(1500), after_ms(1600)));
  EXPECT_FALSE(step(2000));
  EXPECT_EQ(seen.at(1).sample_count, 1U);
}

TEST_F(ScopeTest, ANewPolicyStartsAtItsOwnLimitAndTheOldOneIsGone) {
  scope->set_policy(std::make_unique<ScriptedPolicy>(3));
  EXPECT_EQ(scope->limit(), 3U);
  EXPECT_EQ(scope->stats(kStart).limit_reason, LimitReason::kConfigured);
  EXPECT_EQ(fill(Priority::kHigh), 3U);
  EXPECT_FALSE(step(1000));
  EXPECT_TRUE(seen.empty());
}

TEST_F(ScopeTest, WhatOtherGatewaysKnowReachesThePolicyAndItsNextWindow) {
  const BaselineReport report = scope->exchange_baseline({.at = kStart, .full = 7});
  EXPECT_TRUE(report.full);
  EXPECT_EQ(report.limit, 7U);
  EXPECT_FALSE(step(200));
  EXPECT_EQ(seen.size(), 1U) << "the policy wants shorter windows now";
}

TEST_F(ScopeTest, APolicyWithoutABaselineHasNothingToSay) {
  LimitConfig fixed;
  fixed.policy = LimitKind::kFixed;
  scope->set_policy(make_limit_policy(fixed, Rng(1)));
  EXPECT_EQ(scope->exchange_baseline({.at = kStart, .full = 7}), BaselineReport{});
}

TEST_F(ScopeTest, NewBoundsApplyAtOnce) {
  LimitConfig limit = vegas(4, 1);
  limit.max_limit = 4;
  scope->set_limit(limit, Rng(1));
  EXPECT_EQ(scope->limit(), 4U);
  EXPECT_EQ(scope->stats(kStart).limit_min, 1U);
  EXPECT_EQ(scope->stats(kStart).limit_max, 4U);
  EXPECT_EQ(scope->configured(), limit);
  EXPECT_EQ(fill(Priority::kHigh), 4U);
}

TEST_F(ScopeTest, ALimitAboveWhatTheClassWordCountsIsCutToIt) {
  policy->next.limit = 1'000'000;
  EXPECT_TRUE(step(1000));
  EXPECT_EQ(change.new_limit, kClassUnitsMax);
  EXPECT_EQ(scope->limit(), kClassUnitsMax);
  EXPECT_FALSE(step(2000));  // the limit is unchanged
  EXPECT_EQ(fill(Priority::kHigh), kClassUnitsMax);
  EXPECT_EQ(scope->gate.counts().of(Priority::kNormal), 0U);  // no overflow into the next count
  scope->set_policy(std::make_unique<ScriptedPolicy>(1U << 31U));
  EXPECT_EQ(scope->limit(), kClassUnitsMax);
}

TEST_F(ScopeTest, OneOfManyThreadsClosesAWindow) {
  constexpr int kWindows = rounds(2000);
  policy->next.limit = 10;
  std::barrier next(4);
  run_together(4, [&](std::size_t) {
    for (int w = 1; w <= kWindows; ++w) {
      next.arrive_and_wait();
      LimitChange ignored;
      static_cast<void>(scope->step_limiter(after_ms(1000 * w), ignored));
    }
  });
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kWindows));
}

// Policies are replaced and rules changed while threads close windows and take units.
TEST_F(ScopeTest, PolicySwapsUnderLoadLeaveOneOfTheirLimits) {
  constexpr int kSwaps = rounds(4000);
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        LimitChange ignored;
        for (std::int64_t ms = 0; !stop.load(std::memory_order_relaxed); ms += 1000) {
          const ClassGate::Attempt attempt = scope->gate.try_take({Priority::kHigh}, {}, false);
          static_cast<void>(scope->step_limiter(after_ms(ms), ignored));
          if (attempt.take == Take::kTaken) {
            scope->give_back(attempt.seat, Priority::kHigh, after_ms(ms));
          }
        }
      });
    }
    for (int i = 0; i < kSwaps; ++i) {
      scope->set_policy(std::make_unique<ScriptedPolicy>(i % 2 == 0 ? 5 : 7));
      scope->set_rules(ClassRules{}, RuleModes{}, 0);
    }
    stop.store(true);
  }
  EXPECT_EQ(scope->limit(), 7U);
  EXPECT_EQ(scope->gate.bound(Priority::kHigh), 7U);
  EXPECT_EQ(scope->gate.sheddable(), 0U);
}

// ---- two scopes

// One second of traffic in one scope: `in_flight` requests that all take `latency`.
void one_window_of(AdmissionController& controller, ScopeId scope, int window,
                   std::size_t in_flight, Duration latency) {
  const TimePoint granted = kStart + seconds(window) + milliseconds(1);
  std::vector<Permit> permits =
      admit_all(controller, request_of(Priority::kHigh, scope), in_flight, granted);
  std::vector<Permit> running;  // still in flight when the window closes, as Vegas counts
  while (permits.size() > 1) {
    running.push_back(std::move(permits.back()));
    permits.pop_back();
  }
  std::move(permits.back()).finish(Outcome::kOk, granted + latency);
  controller.expire(kStart + seconds(window + 1));
}

TEST(TwoScopes, OverloadOfOneLeavesTheOthersLimitAlone) {
  AdmissionConfig config;
  config.scopes_max = 3;
  AdmissionController controller(config, Rng(1));
  const ScopeId slow = controller.add_scope("slow", vegas(100, 1));
  const ScopeId idle = controller.add_scope("idle", vegas(100, 1));
  const auto limit = [&](ScopeId scope) { return controller.scope_stats(scope, kStart).limit; };
  controller.expire(kStart);
  one_window_of(controller, slow, 0, 1, milliseconds(5));  // the baseline: 5 ms
  const std::uint32_t before = limit(slow);
  for (int w = 1; w <= 20; ++w) one_window_of(controller, slow, w, 90, milliseconds(500));
  EXPECT_EQ(limit(slow), before - 20);  // one less per window
  EXPECT_EQ(limit(idle), 100U);
  EXPECT_EQ(limit(ScopeId::kFirst), config.limit.initial_limit);
  EXPECT_EQ(controller.scope_stats(idle, kStart).limit_reason, LimitReason::kNoSamples);
  EXPECT_EQ(controller.scope_stats(slow, kStart).limit_reason, LimitReason::kQueueing);
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(TwoScopes, AFullScopeRefusesAndWaitsAlone) {
  AdmissionConfig config = plain_config(100);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  LimitConfig two = config.limit;
  two.initial_limit = 2;
  const ScopeId small = controller.add_scope("small", two);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh, small), 100);
  EXPECT_EQ(full.size(), 2U);
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal, small), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  EXPECT_EQ(controller.scope_stats(small, kStart).waiting, 1U);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).waiting, 0U);
  for (int ms = 0; ms <= 100; ms += 20) {
    EXPECT_FALSE(controller.try_admit(request_of(Priority::kLow, small), after_ms(ms)).has_value());
    EXPECT_TRUE(controller.try_admit(request_of(Priority::kLow), after_ms(ms)).has_value());
  }
  EXPECT_TRUE(controller.is_overloaded(small, after_ms(100)));
  EXPECT_FALSE(controller.is_overloaded(ScopeId::kFirst, after_ms(100)));
  EXPECT_TRUE(controller.cancel(waiter));
}

TEST(TwoScopes, MaxConcurrentIsOneBoundOverAllOfThemAndRefusesWithoutWaiting) {
  AdmissionConfig config = plain_config(10);
  config.max_concurrent = 6;
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId other = controller.add_scope("other", config.limit);
  std::vector<Permit> permits = admit_all(controller, request_of(Priority::kNormal), 4);
  for (Permit& p : admit_all(controller, request_of(Priority::kNormal, other), 100)) {
    permits.push_back(std::move(p));
  }
  EXPECT_EQ(permits.size(), 6U);
  Waiter waiter;
  EXPECT_EQ(controller.enter(request_of(Priority::kHigh), waiter, kStart).kind,
            Entered::Kind::kRefused);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kCritical), kStart).has_value());
  permits.pop_back();
  EXPECT_EQ(controller.enter(request_of(Priority::kHigh), waiter, kStart).kind,
            Entered::Kind::kAdmitted);
}

TEST(TwoScopes, ARequestDearerThanMaxConcurrentIsServedAlone) {
  AdmissionConfig config = plain_config(100);
  config.max_concurrent = 10;
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest dear = request_of(Priority::kNormal);
  dear.cost = 50;
  {
    const Permit permit = controller.try_admit(dear, kStart).value();
    EXPECT_EQ(controller.stats().in_flight, 10U);
    EXPECT_FALSE(controller.try_admit(request_of(Priority::kNormal), kStart).has_value());
  }
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(RemovedScopes, AnIdIsGivenAgainAndTheNextOneStartsAfresh) {
  AdmissionConfig config = plain_config(100);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  LimitConfig two = config.limit;
  two.initial_limit = 2;
  for (int round = 1; round <= 5; ++round) {
    const ScopeId id = controller.add_scope("s" + std::to_string(round), two);
    EXPECT_EQ(static_cast<int>(id), 1);
    EXPECT_EQ(controller.scope_count(), 2U);
    EXPECT_EQ(controller.scope_stats(id, kStart).name, "s" + std::to_string(round));
    EXPECT_EQ(admit_all(controller, request_of(Priority::kHigh, id), 100).size(), 2U);
    const ScopeStats stats = controller.scope_stats(id, kStart);
    EXPECT_EQ(stats.classes[index_of(Priority::kHigh)].acquired, 2U) << "nothing of the one before";
    EXPECT_GT(stats.classes[index_of(Priority::kHigh)].shed, 0U);
    const AdmissionStats before = controller.stats();
    controller.remove_scope(id);
    EXPECT_EQ(controller.scope_count(), 1U);
    EXPECT_EQ(controller.stats().admitted, before.admitted) << "totals do not go back";
    EXPECT_EQ(controller.stats().rejected, before.rejected);
    EXPECT_EQ(controller.stats().admitted, 2U * static_cast<unsigned>(round));
  }
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(RemovedScopes, TheFirstOneMayGoAndTheOthersKeepTheirRules) {
  AdmissionConfig config = plain_config(100);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId other = controller.add_scope("other", config.limit);
  controller.remove_scope(ScopeId::kFirst);
  controller.expire(kStart);
  EXPECT_EQ(controller.next_expiry(), TimePoint::max());
  config.limit.initial_limit = config.limit.max_limit = 7;  // of a scope that is gone
  config.max_concurrent = 50;
  EXPECT_EQ(controller.reconfigure(config), ConfigErrors{});
  EXPECT_EQ(admit_all(controller, request_of(Priority::kHigh, other), 1000).size(), 50U);
  EXPECT_EQ(static_cast<int>(controller.add_scope("new", config.limit)), 0);
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(RemovedScopes, NoWalkOverAllOfThemMeetsADestroyedOne) {
  AdmissionConfig config = plain_config(100);
  config.scopes_max = 3;
  AdmissionController controller(config, Rng(1));
  std::atomic<bool> done{false};
  std::barrier begun(3);
  const auto walk = [&] {
    begun.arrive_and_wait();
    while (!done.load()) {
      controller.expire(kStart);
      EXPECT_EQ(controller.next_expiry(), TimePoint::max());
      EXPECT_GE(controller.stats().admitted, 0U);
    }
  };
  std::thread first(walk);
  std::thread second(walk);
  begun.arrive_and_wait();
  std::uint64_t admitted = 0;
  for (int round = 0; round < 300; ++round) {
    const ScopeId id = controller.add_scope("short", config.limit);
    { const auto permit = controller.try_admit(request_of(Priority::kNormal, id), kStart); }
    controller.remove_scope(id);
    const std::uint64_t now = controller.stats().admitted;
    EXPECT_EQ(now, ++admitted);
  }
  done = true;
  first.join();
  second.join();
}

}  // namespace
}  // namespace weir::inline v0::inline control
