// Overload seen from outside: is_overloaded(), retry hints, operator states, changing limits.
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AdmissionOverload, RefusalsMustPersistForAHundredMilliseconds) {
  AdmissionController controller(plain_config(1), Rng(1));
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  for (int ms = 0; ms <= 100; ms += 5) {
    EXPECT_FALSE(controller.is_overloaded(ScopeId::kFirst, after_ms(ms))) << ms;
    EXPECT_FALSE(controller.try_admit(request_of(Priority::kLow), after_ms(ms)).has_value());
  }
  EXPECT_TRUE(controller.is_overloaded(ScopeId::kFirst, after_ms(100)));
  EXPECT_TRUE(controller.scope_stats(ScopeId::kFirst, after_ms(100)).overloaded);
  EXPECT_TRUE(controller.is_overloaded(ScopeId::kFirst, after_ms(200)));
  EXPECT_FALSE(controller.is_overloaded(ScopeId::kFirst, after_ms(201)));
}

TEST(AdmissionOverload, WaitingThatPersistsCountsToo) {
  AdmissionController controller(plain_config(1), Rng(1));
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  for (int ms = 0; ms <= 100; ms += 10) {
    Waiter waiter;
    ASSERT_EQ(controller.enter(request_of(Priority::kHigh), waiter, after_ms(ms)).kind,
              Entered::Kind::kWaiting);
    EXPECT_TRUE(controller.cancel(waiter));
  }
  EXPECT_TRUE(controller.is_overloaded(ScopeId::kFirst, after_ms(100)));
}

TEST(AdmissionOverload, RefusalsForOtherReasonsDoNotCount) {
  AdmissionConfig config = plain_config(10);
  config.inflight_max = 1;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("greedy");
  const std::vector<Permit> one = admit_all(controller, request, 1);
  for (int ms = 0; ms <= 300; ms += 5) {
    EXPECT_FALSE(controller.try_admit(request, after_ms(ms)).has_value());
  }
  EXPECT_FALSE(controller.is_overloaded(ScopeId::kFirst, after_ms(300)));
}

TEST(AdmissionOverload, MemoryAboveTheFirstThresholdIsOverloadOfEveryScope) {
  AdmissionConfig config = plain_config(10);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId other = controller.add_scope("other", config.limit);
  controller.set_memory(0.86, true);
  EXPECT_TRUE(controller.is_overloaded(ScopeId::kFirst, kStart));
  EXPECT_TRUE(controller.is_overloaded(other, kStart));
  controller.set_memory(0.5, true);
  EXPECT_FALSE(controller.is_overloaded(other, kStart));
}

TEST(AdmissionOverload, QueuesThatOverflowAreOverloadOfTheirScopeOnly) {
  AdmissionConfig config = plain_config(10);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId other = controller.add_scope("other", config.limit);
  controller.set_queues_overflow(other, true);
  EXPECT_FALSE(controller.is_overloaded(ScopeId::kFirst, kStart));
  EXPECT_TRUE(controller.is_overloaded(other, kStart));
  EXPECT_TRUE(controller.scope_stats(other, kStart).overloaded);
  EXPECT_EQ(controller.limit(other), controller.limit(ScopeId::kFirst)) << "it teaches nothing";
  controller.set_queues_overflow(other, false);
  EXPECT_FALSE(controller.is_overloaded(other, kStart));
}

// ---- retry hints

TEST(AdmissionOverload, TheHintIsNotShorterThanAQueueAdvises) {
  AdmissionController controller(plain_config(10), Rng(1));
  Rng rng(6);
  const Duration hint = controller.retry_after(ScopeId::kFirst, kStart, rng, milliseconds(500));
  EXPECT_GE(hint, milliseconds(500));
  EXPECT_LE(hint, milliseconds(750));
}

TEST(AdmissionOverload, TheHintIsFromTheDrainRateJitteredAndAtLeastFiftyMilliseconds) {
  AdmissionController controller(plain_config(10), Rng(1));
  Rng rng(5);
  Duration hint = controller.retry_after(ScopeId::kFirst, kStart, rng);
  EXPECT_GE(hint, milliseconds(100));  // unknown: a tenth of a second, plus jitter
  EXPECT_LE(hint, milliseconds(150));
  // 20 a second, one request ahead plus itself: 100 ms.
  controller.expire(kStart);
  for (int i = 0; i < 2; ++i) {
    Permit permit = controller.try_admit(request_of(Priority::kHigh), kStart).value();
    std::move(permit).finish(Outcome::kOk, after_ms(10));
  }
  controller.expire(after_ms(100));
  const std::vector<Permit> full =
      admit_all(controller, request_of(Priority::kHigh), 10, after_ms(100));
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kHigh), waiter, after_ms(100)).kind,
            Entered::Kind::kWaiting);
  bool spread = false;
  for (int i = 0; i < 100; ++i) {
    const Duration next = controller.retry_after(ScopeId::kFirst, after_ms(100), rng);
    EXPECT_GE(next, milliseconds(100));
    EXPECT_LE(next, milliseconds(150));
    spread = spread || next != hint;
    hint = next;
  }
  EXPECT_TRUE(spread);
  EXPECT_TRUE(controller.cancel(waiter));
}

TEST(AdmissionOverload, AFastServerStillAsksForFiftyMilliseconds) {
  AdmissionController controller(plain_config(1000), Rng(1));
  Rng rng(5);
  controller.expire(kStart);
  for (int i = 0; i < 1000; ++i) {
    Permit permit = controller.try_admit(request_of(Priority::kHigh), kStart).value();
    std::move(permit).finish(Outcome::kOk, after_ms(1));
  }
  controller.expire(after_ms(100));
  const Duration hint = controller.retry_after(ScopeId::kFirst, after_ms(100), rng);
  EXPECT_GE(hint, milliseconds(50));
  EXPECT_LE(hint, milliseconds(75));
}

// ---- the limiter, driven by requests

/// One second: one request that took `latency`, `running` more in flight when the window closes.
void one_window(AdmissionController& controller, int second, std::size_t running,
                Duration latency) {
  const TimePoint granted = kStart + seconds(second) + milliseconds(1);
  Permit sampled = controller.try_admit(request_of(Priority::kHigh), granted).value();
  std::move(sampled).finish(Outcome::kOk, granted + latency);
  const std::vector<Permit> held =
      admit_all(controller, request_of(Priority::kHigh), running, granted);
  ASSERT_EQ(held.size(), running);
  controller.expire(kStart + seconds(second + 1));
}

AdmissionConfig vegas_config(std::uint32_t initial, std::uint32_t min_limit) {
  AdmissionConfig config;
  config.limit = vegas(initial, min_limit);
  return config;
}

TEST(AdmissionVegas, IncreasesOnALowQueue) {
  AdmissionController controller(vegas_config(100, 8), Rng(1));
  controller.expire(kStart);
  one_window(controller, 0, 10, milliseconds(5));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit, 101U);
}

TEST(AdmissionVegas, DecreasesOnAHighQueue) {
  AdmissionController controller(vegas_config(99, 8), Rng(1));
  controller.expire(kStart);
  one_window(controller, 0, 10, milliseconds(5));
  ASSERT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit, 100U);
  one_window(controller, 1, 100, milliseconds(50));
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(stats.limit, 99U);
  EXPECT_DOUBLE_EQ(stats.queue_estimate, 90.0);
  EXPECT_EQ(stats.baseline, milliseconds(5));
  EXPECT_EQ(stats.latency_avg, milliseconds(50));
}

TEST(AdmissionVegas, RespectsTheMinimum) {
  AdmissionController controller(vegas_config(9, 9), Rng(1));
  controller.expire(kStart);
  one_window(controller, 0, 0, milliseconds(1));
  ASSERT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit, 10U);
  for (int w = 1; w < 5; ++w) {
    one_window(controller, w, 9, milliseconds(100));
    const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
    EXPECT_EQ(stats.limit, 9U);
    EXPECT_EQ(stats.limit_min, 9U);
    EXPECT_EQ(stats.limit_reason, w == 1 ? LimitReason::kQueueing : LimitReason::kAtFloor);
  }
}

TEST(AdmissionLimit, OverloadOutcomesShrinkItAndErrorsDoNot) {
  AdmissionConfig config;
  config.limit = {.policy = LimitKind::kAimd, .initial_limit = 100, .min_limit = 1};
  for (const Outcome outcome : {Outcome::kOverload, Outcome::kError}) {
    AdmissionController controller(config, Rng(1));
    controller.expire(kStart);
    for (int i = 0; i < 50; ++i) {
      Permit permit = controller.try_admit(request_of(Priority::kHigh), kStart).value();
      std::move(permit).finish(outcome, after_ms(10));
    }
    controller.expire(after_ms(1000));
    const std::uint32_t limit = controller.scope_stats(ScopeId::kFirst, kStart).limit;
    EXPECT_EQ(limit < 100U, outcome == Outcome::kOverload);
  }
}

// A client that gave up after more than the baseline waited at least that long.
TEST(AdmissionLimit, ACancelIsASampleOnlyIfItWasSlowerThanTheBaseline) {
  AdmissionController controller(vegas_config(100, 8), Rng(1));
  controller.expire(kStart);
  const auto cancel_after = [&](int second, Duration latency) {
    const TimePoint granted = kStart + seconds(second);
    Permit permit = controller.try_admit(request_of(Priority::kHigh), granted).value();
    std::move(permit).finish(Outcome::kIgnored, granted + latency);
    controller.expire(kStart + seconds(second + 1));
    return controller.scope_stats(ScopeId::kFirst, kStart).latency_avg;
  };
  EXPECT_EQ(cancel_after(0, milliseconds(700)), Duration(0));  // no baseline yet
  one_window(controller, 1, 0, milliseconds(10));
  EXPECT_EQ(cancel_after(2, milliseconds(9)), milliseconds(10));
  EXPECT_EQ(cancel_after(3, milliseconds(300)), milliseconds(300));
}

TEST(AdmissionLimit, ADestroyedPermitFeedsNoSample) {
  AdmissionController controller(vegas_config(100, 8), Rng(1));
  controller.expire(kStart);
  { const Permit gone = controller.try_admit(request_of(Priority::kHigh), kStart).value(); }
  controller.expire(after_ms(1000));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit_reason, LimitReason::kNoSamples);
}

// Time in the waiting room is not the service's latency.
TEST(AdmissionLimit, LatencyIsMeasuredFromTheGrant) {
  AdmissionConfig config = plain_config(1);
  config.limit.policy = LimitKind::kVegas;
  AdmissionController controller(config, Rng(1));
  controller.expire(kStart);
  Permit first = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kHigh), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  std::move(first).finish(Outcome::kError, after_ms(90));
  Permit second = controller.collect(waiter, after_ms(90)).value();
  EXPECT_EQ(second.granted_at(), after_ms(90));
  std::move(second).finish(Outcome::kOk, after_ms(97));
  controller.expire(after_ms(1000));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).latency_avg, milliseconds(7));
}

// ---- live changes of the limit's configuration

TEST(AdmissionLimit, NewBoundsKeepThePolicyAndItsBaseline) {
  AdmissionController controller(vegas_config(100, 8), Rng(1));
  controller.expire(kStart);
  one_window(controller, 0, 10, milliseconds(5));
  AdmissionConfig config = controller.config();
  config.limit.max_limit = 60;
  config.limit.initial_limit = 50;
  controller.reconfigure(config);
  ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(stats.limit, 60U);
  EXPECT_EQ(stats.baseline, milliseconds(5));
  one_window(controller, 1, 50, milliseconds(50));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit, 59U);
}

TEST(AdmissionLimit, AnotherPolicyStartsFromTheLimitInForce) {
  AdmissionController controller(vegas_config(100, 8), Rng(1));
  controller.expire(kStart);
  one_window(controller, 0, 10, milliseconds(5));
  AdmissionConfig config = controller.config();
  config.limit.policy = LimitKind::kAimd;
  controller.reconfigure(config);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit, 101U);
}

TEST(AdmissionLimit, AScopeWithItsOwnLimitIgnoresTheDefaultsBounds) {
  AdmissionConfig config = vegas_config(100, 8);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId own = controller.add_scope("own", vegas(70, 8));
  config.limit.max_limit = config.limit.initial_limit = 20;
  controller.reconfigure(config);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit, 20U);
  EXPECT_EQ(controller.scope_stats(own, kStart).limit, 70U);
  LimitConfig smaller = vegas(10, 2);
  smaller.max_limit = 30;
  controller.set_limit(own, smaller);
  EXPECT_EQ(controller.scope_stats(own, kStart).limit, 30U);
  EXPECT_EQ(controller.scope_stats(own, kStart).limit_min, 2U);
}

TEST(AdmissionLimit, TableSizesKeepTheirValuesAcrossReconfiguration) {
  AdmissionConfig config = plain_config(10);
  AdmissionController controller(config, Rng(1));
  config.actor_table_size *= 2;
  config.peer_table_size *= 2;
  config.scopes_max = 3;
  config.inflight_max = 5;
  controller.reconfigure(config);
  EXPECT_EQ(controller.config().actor_table_size, AdmissionConfig{}.actor_table_size);
  EXPECT_EQ(controller.config().peer_table_size, AdmissionConfig{}.peer_table_size);
  EXPECT_EQ(controller.config().scopes_max, 1U);
  EXPECT_EQ(controller.config().inflight_max, 5U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
