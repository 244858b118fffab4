// Waiters, their order, and how waiting ends. One thread and virtual time, then threads.
#include "waiting_room.h"

#include <array>
#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using Kind = Entered::Kind;

class WaitingRoomTest : public ::testing::Test {
 protected:
  explicit WaitingRoomTest(const AdmissionConfig& config = plain_config(2))
      : controller(config, Rng(1)) {
    full = admit_all(controller, request_of(Priority::kHigh), 100);
  }
  ~WaitingRoomTest() override {
    full.clear();
    EXPECT_TRUE(all_is_given_back(controller));
  }
  [[nodiscard]] Kind enter(Priority priority, Waiter& waiter, TimePoint now = kStart) {
    return controller.enter(request_of(priority), waiter, now).kind;
  }
  [[nodiscard]] std::uint32_t waiting() const {
    return controller.scope_stats(ScopeId::kFirst, kStart).waiting;
  }

  AdmissionController controller;
  std::vector<Permit> full;
};

TEST_F(WaitingRoomTest, EachClassIsServedFirstComeFirstServedAndHighBeforeNormal) {
  std::array<Waiter, 6> waiters;
  constexpr std::array kClasses = {Priority::kNormal, Priority::kHigh,   Priority::kNormal,
                                   Priority::kHigh,   Priority::kNormal, Priority::kHigh};
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    ASSERT_EQ(enter(kClasses[i], waiters[i]), Kind::kWaiting);
  }
  EXPECT_EQ(waiting(), 6U);
  Permit held = std::move(full.back());
  full.pop_back();
  for (const std::size_t next : {1U, 3U, 5U, 0U, 2U, 4U}) {
    held = Permit();  // one unit is given back: exactly one waiter gets it
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      EXPECT_EQ(waiters[i].state() == Waiter::State::kGranted, i == next) << i << " at " << next;
    }
    held = controller.collect(waiters[next], kStart).value();
  }
}

TEST_F(WaitingRoomTest, HighWaitsItsTierAndNormalItsShorterOne) {
  Waiter high;
  Waiter normal;
  ASSERT_EQ(enter(Priority::kHigh, high), Kind::kWaiting);
  ASSERT_EQ(enter(Priority::kNormal, normal), Kind::kWaiting);
  EXPECT_EQ(high.expires_at(), after_ms(100));
  EXPECT_EQ(normal.expires_at(), after_ms(50));
  EXPECT_EQ(controller.next_expiry(), after_ms(50));
  controller.expire(after_ms(50) - Duration(1));
  EXPECT_EQ(normal.state(), Waiter::State::kWaiting);
  controller.expire(after_ms(50));
  EXPECT_EQ(normal.state(), Waiter::State::kRefused);
  EXPECT_EQ(high.state(), Waiter::State::kWaiting);
  EXPECT_EQ(controller.next_expiry(), after_ms(100));
  controller.expire(after_ms(100));
  EXPECT_EQ(controller.collect(normal, after_ms(50)).error(), Reason::kOverload);
  EXPECT_EQ(controller.collect(high, after_ms(100)).error(), Reason::kOverload);
}

TEST_F(WaitingRoomTest, NobodyIsServedAfterItsTierEvenIfNobodyCalledExpire) {
  Waiter late;
  Waiter in_time;
  ASSERT_EQ(enter(Priority::kNormal, late), Kind::kWaiting);
  ASSERT_EQ(enter(Priority::kNormal, in_time, after_ms(20)), Kind::kWaiting);
  std::move(full.back()).finish(Outcome::kOk, after_ms(60));
  full.pop_back();
  EXPECT_EQ(late.state(), Waiter::State::kRefused);
  EXPECT_EQ(in_time.state(), Waiter::State::kGranted);
  EXPECT_FALSE(controller.collect(late, after_ms(60)).has_value());
  EXPECT_TRUE(controller.collect(in_time, after_ms(60)).has_value());
}

TEST_F(WaitingRoomTest, ADeadlineEndsTheWaitEarlierAndIsNamed) {
  Waiter waiter;
  AdmissionRequest request = request_of(Priority::kHigh);
  request.deadline = after_ms(7);
  ASSERT_EQ(controller.enter(request, waiter, kStart).kind, Kind::kWaiting);
  EXPECT_EQ(controller.next_expiry(), after_ms(7));
  controller.expire(after_ms(7));
  EXPECT_EQ(controller.collect(waiter, after_ms(7)).error(), Reason::kDeadline);
}

TEST_F(WaitingRoomTest, LowAndHedgesAndCriticalNeverWait) {
  Waiter waiter;
  EXPECT_EQ(enter(Priority::kLow, waiter), Kind::kRefused);
  AdmissionRequest hedge = request_of(Priority::kHigh);
  hedge.hedge = true;
  EXPECT_EQ(controller.enter(hedge, waiter, kStart).kind, Kind::kRefused);
  EXPECT_EQ(enter(Priority::kCritical, waiter), Kind::kAdmitted);
  EXPECT_EQ(waiter.state(), Waiter::State::kIdle);
}

TEST_F(WaitingRoomTest, ATierOfZeroRefusesAtOnce) {
  AdmissionConfig config = controller.config();
  config.normal_wait_max = Duration(0);
  controller.reconfigure(config);
  Waiter waiter;
  EXPECT_EQ(enter(Priority::kNormal, waiter), Kind::kRefused);
  Waiter high;
  EXPECT_EQ(enter(Priority::kHigh, high), Kind::kWaiting);
  EXPECT_TRUE(controller.cancel(high));
}

TEST_F(WaitingRoomTest, ANewcomerQueuesBehindAWaiterOfItsOwnOrAHigherClass) {
  Waiter dear;  // needs both units, so one free unit leaves room for a cheap new request
  AdmissionRequest request = request_of(Priority::kHigh);
  request.cost = 2;
  ASSERT_EQ(controller.enter(request, dear, kStart).kind, Kind::kWaiting);
  full.pop_back();
  EXPECT_EQ(dear.state(), Waiter::State::kWaiting);
  Waiter normal;
  EXPECT_EQ(enter(Priority::kNormal, normal), Kind::kWaiting);
  EXPECT_EQ(controller.try_admit(request_of(Priority::kHigh), kStart).error(), Reason::kOverload);
  EXPECT_EQ(controller.try_admit(request_of(Priority::kLow), kStart).error(), Reason::kOverload);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kCritical), kStart).has_value());
  full.pop_back();
  EXPECT_EQ(dear.state(), Waiter::State::kGranted);
  EXPECT_EQ(normal.state(), Waiter::State::kWaiting);
  controller.collect(dear, kStart).value() = Permit();
  EXPECT_TRUE(controller.collect(normal, kStart).has_value());
}

TEST_F(WaitingRoomTest, HighOvertakesNormalThatWaits) {
  Waiter dear;
  AdmissionRequest request = request_of(Priority::kNormal);
  request.cost = 2;
  ASSERT_EQ(controller.enter(request, dear, kStart).kind, Kind::kWaiting);
  full.pop_back();
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value());
  EXPECT_TRUE(controller.cancel(dear));
}

TEST_F(WaitingRoomTest, WhenADearWaiterLeavesWhoStoodBehindItIsServed) {
  Waiter dear;
  AdmissionRequest request = request_of(Priority::kHigh);
  request.cost = 2;
  ASSERT_EQ(controller.enter(request, dear, kStart).kind, Kind::kWaiting);
  Waiter cheap;
  ASSERT_EQ(enter(Priority::kNormal, cheap), Kind::kWaiting);
  full.pop_back();
  EXPECT_EQ(cheap.state(), Waiter::State::kWaiting);
  EXPECT_TRUE(controller.cancel(dear));
  EXPECT_TRUE(controller.collect(cheap, kStart).has_value());
}

TEST_F(WaitingRoomTest, WhenADearWaiterExpiresWhoStoodBehindItIsServed) {
  Waiter dear;
  AdmissionRequest request = request_of(Priority::kNormal);
  request.cost = 2;
  ASSERT_EQ(controller.enter(request, dear, kStart).kind, Kind::kWaiting);
  Waiter cheap;
  ASSERT_EQ(enter(Priority::kNormal, cheap, after_ms(30)), Kind::kWaiting);
  full.pop_back();
  controller.expire(after_ms(50));
  EXPECT_FALSE(controller.collect(dear, after_ms(50)).has_value());
  EXPECT_TRUE(controller.collect(cheap, after_ms(50)).has_value());
}

TEST_F(WaitingRoomTest, AClientThatVanishesWhileWaitingLeavesNoTrace) {
  const AdmissionStats before = controller.stats();
  ReadyFlag flag;
  Waiter waiter(&ReadyFlag::set, &flag);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  request.peer = controller.identify("node-1");
  request.bytes = 1000;
  ASSERT_EQ(controller.enter(request, waiter, kStart).kind, Kind::kWaiting);
  EXPECT_EQ(controller.stats().bytes, 1000U);
  ASSERT_EQ(controller.top_actors(1).at(0).in_flight, 1U);
  EXPECT_TRUE(controller.cancel(waiter));
  EXPECT_EQ(waiter.state(), Waiter::State::kCancelled);
  EXPECT_FALSE(controller.cancel(waiter));
  EXPECT_EQ(controller.stats().bytes, 0U);
  EXPECT_EQ(controller.stats().admitted, before.admitted);
  EXPECT_EQ(controller.stats().rejected, before.rejected);
  EXPECT_TRUE(controller.top_actors(1).empty());
  EXPECT_TRUE(controller.top_peers(1).empty());
  full.pop_back();  // no waiter gets the freed unit
  EXPECT_EQ(flag.calls.load(), 0);
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(enter(Priority::kNormal, waiter), Kind::kAdmitted);  // the waiter can be used again
}

TEST_F(WaitingRoomTest, WaitingIsCountedPerClassByHowLongItTook) {
  Waiter waiter;
  ASSERT_EQ(enter(Priority::kHigh, waiter), Kind::kWaiting);
  full.pop_back();
  EXPECT_TRUE(controller.collect(waiter, after_ms(7)).has_value());
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  const WaitHistogram& high = stats.classes[index_of(Priority::kHigh)].waited;
  EXPECT_EQ(high.count, 1U);
  EXPECT_EQ(high.sum, milliseconds(7));
  EXPECT_EQ(high.buckets[3], 1U);  // above 5, at most 10
  EXPECT_EQ(stats.classes[index_of(Priority::kNormal)].waited.count, 0U);
}

TEST_F(WaitingRoomTest, AHigherLimitServesWhoWaits) {
  std::array<Waiter, 3> waiters;
  for (Waiter& w : waiters) ASSERT_EQ(enter(Priority::kNormal, w), Kind::kWaiting);
  AdmissionConfig config = controller.config();
  config.max_concurrent = config.limit.initial_limit = config.limit.max_limit = 4;
  controller.reconfigure(config);
  EXPECT_EQ(waiters[0].state(), Waiter::State::kGranted);
  EXPECT_EQ(waiters[1].state(), Waiter::State::kGranted);
  EXPECT_EQ(waiters[2].state(), Waiter::State::kWaiting);
  EXPECT_TRUE(controller.cancel(waiters[2]));
  EXPECT_TRUE(controller.collect(waiters[0], kStart).has_value());
  EXPECT_TRUE(controller.collect(waiters[1], kStart).has_value());
}

TEST_F(WaitingRoomTest, ARuleThatIsSwitchedOffServesEverybodyWhoWaitedForIt) {
  std::array<Waiter, 3> waiters;
  for (Waiter& w : waiters) ASSERT_EQ(enter(Priority::kNormal, w), Kind::kWaiting);
  AdmissionConfig config = controller.config();
  config.modes.limit = RuleMode::kOff;
  controller.reconfigure(config);
  for (Waiter& w : waiters) EXPECT_TRUE(controller.collect(w, kStart).has_value());
}

TEST_F(WaitingRoomTest, AWaiterWhoseClassMeanwhileReachedItsCapIsRefusedByIt) {
  Waiter waiter;
  ASSERT_EQ(enter(Priority::kHigh, waiter), Kind::kWaiting);
  AdmissionConfig config = controller.config();
  config.classes.caps[index_of(Priority::kHigh)] = 1;
  controller.reconfigure(config);  // two are in flight already
  EXPECT_EQ(controller.collect(waiter, kStart).error(), Reason::kClassLimit);
}

TEST_F(WaitingRoomTest, OnReadyFiresOnceWhenGrantedOrExpired) {
  ReadyFlag granted;
  ReadyFlag expired;
  Waiter first(&ReadyFlag::set, &granted);
  Waiter second(&ReadyFlag::set, &expired);
  ASSERT_EQ(enter(Priority::kHigh, first), Kind::kWaiting);
  ASSERT_EQ(enter(Priority::kHigh, second), Kind::kWaiting);
  full.pop_back();
  EXPECT_EQ(granted.calls.load(), 1);
  EXPECT_EQ(expired.calls.load(), 0);
  controller.expire(after_ms(100));
  controller.expire(after_ms(101));
  EXPECT_EQ(granted.calls.load(), 1);
  EXPECT_EQ(expired.calls.load(), 1);
  EXPECT_TRUE(controller.collect(first, after_ms(101)).has_value());
  EXPECT_FALSE(controller.collect(second, after_ms(101)).has_value());
}

using WaitingRoomDeathTest = WaitingRoomTest;

TEST_F(WaitingRoomDeathTest, AWaiterMustNotDieInLineNorEnterTwiceNorBeCollectedEarly) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        Waiter waiter;
        static_cast<void>(enter(Priority::kHigh, waiter));
      },
      "WEIR_ASSERT");
  Waiter waiter;
  ASSERT_EQ(enter(Priority::kHigh, waiter), Kind::kWaiting);
  EXPECT_DEATH(static_cast<void>(enter(Priority::kHigh, waiter)), "WEIR_ASSERT");
  EXPECT_DEATH(static_cast<void>(controller.collect(waiter, kStart)), "WEIR_ASSERT");
  full.pop_back();
  ASSERT_EQ(waiter.state(), Waiter::State::kGranted);
  EXPECT_DEATH(static_cast<void>(enter(Priority::kHigh, waiter)), "WEIR_ASSERT");
  EXPECT_TRUE(controller.collect(waiter, kStart).has_value());
}

// ---- full rooms and expected waits

class SmallRoomTest : public WaitingRoomTest {
 protected:
  static AdmissionConfig config() {
    AdmissionConfig c = plain_config(1);
    c.waiting_max = 2;
    return c;
  }
  SmallRoomTest() : WaitingRoomTest(config()) {}
};

TEST_F(SmallRoomTest, AFullRoomRefusesAtOnceAndAFreedPlaceIsTakenAgain) {
  std::array<Waiter, 3> waiters;
  ASSERT_EQ(enter(Priority::kNormal, waiters[0]), Kind::kWaiting);
  ASSERT_EQ(enter(Priority::kHigh, waiters[1]), Kind::kWaiting);
  EXPECT_EQ(enter(Priority::kHigh, waiters[2]), Kind::kRefused);
  EXPECT_EQ(waiters[2].state(), Waiter::State::kIdle);
  EXPECT_TRUE(controller.cancel(waiters[0]));
  EXPECT_EQ(enter(Priority::kNormal, waiters[2]), Kind::kWaiting);
  EXPECT_TRUE(controller.cancel(waiters[1]));
  EXPECT_TRUE(controller.cancel(waiters[2]));
}

TEST_F(SmallRoomTest, ARoomOfNoneRefusesEverybody) {
  AdmissionConfig config = controller.config();
  config.waiting_max = 0;
  controller.reconfigure(config);
  Waiter waiter;
  EXPECT_EQ(enter(Priority::kHigh, waiter), Kind::kRefused);
}

TEST(WaitingRoom, TenThousandArrivalsAtAFullServerAreRefusedAtOnce) {
  AdmissionController controller(plain_config(8), Rng(1));
  std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 8);
  const auto waiters = std::make_unique<std::array<Waiter, 1024>>();
  for (Waiter& w : *waiters) {
    ASSERT_EQ(controller.enter(request_of(Priority::kNormal), w, kStart).kind, Kind::kWaiting);
  }
  Waiter waiter;
  for (int i = 0; i < 10'000; ++i) {
    const Entered entered = controller.enter(request_of(Priority::kNormal), waiter, kStart);
    ASSERT_EQ(entered.kind, Kind::kRefused) << i;
    ASSERT_EQ(entered.reason, Reason::kOverload);
  }
  EXPECT_EQ(controller.stats().rejected, 10'000U);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).waiting, 1024U);
  controller.expire(after_ms(50));
  for (Waiter& w : *waiters) EXPECT_FALSE(controller.collect(w, after_ms(50)).has_value());
  full.clear();
  EXPECT_TRUE(all_is_given_back(controller));
}

// Finishes a request every 10 ms from -100 ms to 100 ms while there is always a waiter: the
// capacity is 100 a second.
void drain_at_capacity(AdmissionController& controller) {
  constexpr std::size_t kFinished = 20;
  Permit held = controller.try_admit(request_of(Priority::kHigh), after_ms(-100)).value();
  std::array<Waiter, kFinished + 1> waiters;
  const auto enter = [&](std::size_t i, TimePoint now) {
    ASSERT_EQ(controller.enter(request_of(Priority::kHigh), waiters[i], now).kind, Kind::kWaiting);
  };
  enter(0, after_ms(-100));
  for (std::size_t i = 0; i < kFinished; ++i) {
    const TimePoint now = after_ms(10 * static_cast<int>(i) - 100);
    enter(i + 1, now);
    std::move(held).finish(Outcome::kOk, now);
    held = controller.collect(waiters[i], now).value();
  }
  controller.expire(after_ms(100));
  ASSERT_DOUBLE_EQ(controller.scope_stats(ScopeId::kFirst, after_ms(100)).drain_per_second, 100.0);
  ASSERT_TRUE(controller.cancel(waiters[kFinished]));
}

TEST(WaitingRoom, WhoWouldWaitLongerThanItsTierIsRefusedAtOnce) {
  AdmissionController controller(plain_config(1), Rng(1));
  drain_at_capacity(controller);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  std::array<Waiter, 6> waiters;
  // 10 ms for each one ahead plus itself: five fit into normal's 50 ms, the sixth does not.
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiters[i], after_ms(100)).kind,
              Kind::kWaiting)
        << i;
  }
  EXPECT_EQ(controller.enter(request_of(Priority::kNormal), waiters[5], after_ms(100)).kind,
            Kind::kRefused);
  // High is ahead of them all and may wait twice as long.
  EXPECT_EQ(controller.enter(request_of(Priority::kHigh), waiters[5], after_ms(100)).kind,
            Kind::kWaiting);
  for (Waiter& w : waiters) EXPECT_TRUE(controller.cancel(w));
}

TEST(WaitingRoom, ADeadlineNearerThanTheExpectedWaitIsRefusedAtOnce) {
  AdmissionController controller(plain_config(1), Rng(1));
  drain_at_capacity(controller);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  Waiter waiter;
  AdmissionRequest request = request_of(Priority::kHigh);
  request.deadline = after_ms(109);
  EXPECT_EQ(controller.enter(request, waiter, after_ms(100)).kind, Kind::kRefused);
  request.deadline = after_ms(111);
  EXPECT_EQ(controller.enter(request, waiter, after_ms(100)).kind, Kind::kWaiting);
  EXPECT_TRUE(controller.cancel(waiter));
}

TEST(WaitingRoom, AnOldDrainRateRefusesNobody) {
  AdmissionController controller(plain_config(1), Rng(1));
  drain_at_capacity(controller);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  std::array<Waiter, 20> waiters;
  for (Waiter& w : waiters) {
    ASSERT_EQ(controller.enter(request_of(Priority::kNormal), w, after_ms(1101)).kind,
              Kind::kWaiting);
  }
  for (Waiter& w : waiters) EXPECT_TRUE(controller.cancel(w));
}

TEST(WaitingRoom, WhatAQuietServiceWasAskedForSaysNothingAboutWhatItCanDo) {
  AdmissionController controller(plain_config(1), Rng(1));
  controller.expire(kStart);
  std::move(controller.try_admit(request_of(Priority::kHigh), kStart).value())
      .finish(Outcome::kOk, after_ms(1));
  controller.expire(after_ms(100));
  ASSERT_DOUBLE_EQ(controller.scope_stats(ScopeId::kFirst, after_ms(100)).drain_per_second, 10.0);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  std::array<Waiter, 20> burst;
  for (Waiter& w : burst) {
    ASSERT_EQ(controller.enter(request_of(Priority::kNormal), w, after_ms(100)).kind,
              Kind::kWaiting);
  }
  for (Waiter& w : burst) EXPECT_TRUE(controller.cancel(w));
}

TEST_F(WaitingRoomTest, AStallIsNotHeldAgainstThoseWhoWait) {
  controller.forgive_pauses(milliseconds(5));
  Waiter normal;
  Waiter hurried;
  AdmissionRequest soon = request_of(Priority::kNormal);
  soon.deadline = after_ms(60);
  ASSERT_EQ(enter(Priority::kNormal, normal), Kind::kWaiting);
  ASSERT_EQ(controller.enter(soon, hurried, kStart).kind, Kind::kWaiting);
  controller.expire(after_ms(70));  // 20 ms after their expiry: a stall
  EXPECT_EQ(normal.expires_at(), after_ms(120)) << "as long once more";
  EXPECT_EQ(normal.state(), Waiter::State::kWaiting);
  EXPECT_EQ(controller.collect(hurried, after_ms(70)).error(), Reason::kDeadline)
      << "a deadline is the client's";
  controller.expire(after_ms(480));  // and again
  EXPECT_EQ(normal.expires_at(), after_ms(500)) << "nobody waits for ever";
  controller.expire(after_ms(520));
  EXPECT_EQ(controller.collect(normal, after_ms(520)).error(), Reason::kOverload);
}

TEST_F(WaitingRoomTest, AfterAStallAnAnswerMayComeBeforeTheTimer) {
  controller.forgive_pauses(milliseconds(5));
  Waiter first;
  Waiter second;
  ASSERT_EQ(enter(Priority::kNormal, first), Kind::kWaiting);
  ASSERT_EQ(enter(Priority::kNormal, second), Kind::kWaiting);
  std::move(full.back()).finish(Outcome::kOk, after_ms(250));  // pumps with a known time
  full.pop_back();
  const auto served = controller.collect(first, after_ms(250));
  EXPECT_TRUE(served.has_value());
  EXPECT_EQ(second.state(), Waiter::State::kWaiting);
  EXPECT_TRUE(controller.cancel(second));
}

TEST_F(WaitingRoomTest, WhoIsFoundInTimeIsNotForgiven) {
  controller.forgive_pauses(milliseconds(5));
  Waiter waiter;
  ASSERT_EQ(enter(Priority::kNormal, waiter), Kind::kWaiting);
  controller.expire(after_ms(55));
  EXPECT_EQ(controller.collect(waiter, after_ms(55)).error(), Reason::kOverload);
}

}  // namespace
}  // namespace weir::inline v0::inline control
