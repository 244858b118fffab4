#include "timer_wheel.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::io {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart = time_from_ns(1'234'567'890'123);

/// A timer that records when it fired.
struct Probe {
  Probe() : timer(Timer::Fired::to<&Probe::fired>(*this)) {}
  void fired(TimePoint now) {
    ++count;
    at = now;
    if (order != nullptr) order->push_back(id);
  }
  Timer timer;
  int id = 0;
  int count = 0;
  TimePoint at{};
  std::vector<int>* order = nullptr;
};

TEST(TimerWheel, FiresAtItsTickAndNeverBefore) {
  TimerWheel wheel(kStart);
  Probe probe;
  const TimePoint deadline = kStart + microseconds(2500);
  wheel.arm(probe.timer, deadline);
  EXPECT_TRUE(probe.timer.armed());
  EXPECT_EQ(wheel.advance(deadline - Duration(1)), 0U);
  const TimePoint wake = *wheel.next_wake();
  EXPECT_GE(wake, deadline);
  EXPECT_LT(wake, deadline + TimerWheel::kTick);
  EXPECT_EQ(wheel.advance(wake), 1U);
  EXPECT_EQ(probe.count, 1);
  EXPECT_FALSE(probe.timer.armed());
  EXPECT_FALSE(wheel.next_wake().has_value());
}

TEST(TimerWheel, CancelledTimerStaysSilentAndRearmingMoves) {
  TimerWheel wheel(kStart);
  Probe cancelled;
  Probe moved;
  wheel.arm(cancelled.timer, kStart + milliseconds(5));
  wheel.arm(moved.timer, kStart + milliseconds(5));
  wheel.cancel(cancelled.timer);
  wheel.cancel(cancelled.timer);
  wheel.arm(moved.timer, kStart + seconds(100));
  EXPECT_EQ(wheel.size(), 1U);
  wheel.advance(kStart + seconds(50));
  EXPECT_EQ(cancelled.count + moved.count, 0);
  wheel.advance(kStart + seconds(101));
  EXPECT_EQ(moved.count, 1);
}

TEST(TimerWheel, TimersOfOneTickFireInTheOrderTheyWereArmed) {
  TimerWheel wheel(kStart);
  std::vector<int> order;
  std::vector<std::unique_ptr<Probe>> probes;
  for (int i = 0; i < 10; ++i) {
    probes.push_back(std::make_unique<Probe>());
    probes.back()->id = i;
    probes.back()->order = &order;
    wheel.arm(probes.back()->timer, kStart + milliseconds(7));
  }
  EXPECT_EQ(wheel.advance(kStart + milliseconds(8)), 10U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 10U);
}

TEST(TimerWheel, AgreesWithASortedListOverRandomUse) {
  // Random arms, moves, cancels and steps from one tick to days, compared with a plain table.
  Rng rng(7);
  TimerWheel wheel(kStart);
  std::vector<std::unique_ptr<Probe>> probes(500);
  std::vector<TimePoint> truth(probes.size());  // zero: not armed
  for (auto& probe : probes) probe = std::make_unique<Probe>();
  TimePoint now = kStart;
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t i = rng.below(probes.size());
    const std::int64_t reach = std::int64_t{1} << rng.between(20, 48);
    if (rng.chance(0.2)) {
      wheel.cancel(probes[i]->timer);
      truth[i] = {};
    } else {
      truth[i] = now + Duration(rng.between(-1'000'000, reach));
      wheel.arm(probes[i]->timer, truth[i]);
    }
    if (!rng.chance(0.3)) continue;
    now += Duration(rng.between(0, std::int64_t{1} << rng.between(10, 46)));
    for (auto& probe : probes) probe->count = 0;
    wheel.advance(now);
    for (std::size_t k = 0; k < probes.size(); ++k) {
      if (probes[k]->count == 0) {
        if (truth[k] != TimePoint{}) {
          ASSERT_GT(truth[k] + TimerWheel::kTick * 2, now) << "late by more than a tick";
        }
        continue;
      }
      ASSERT_EQ(probes[k]->count, 1);
      ASSERT_NE(truth[k], TimePoint{});
      ASSERT_LE(truth[k], now) << "early";
      truth[k] = {};
    }
  }
  const auto armed =
      std::count_if(truth.begin(), truth.end(), [](TimePoint t) { return t != TimePoint{}; });
  EXPECT_EQ(wheel.size(), static_cast<std::size_t>(armed));
  for (auto& probe : probes) wheel.cancel(probe->timer);
}

TEST(TimerWheel, NextWakeIsNeverLaterThanTheEarliestDeadline) {
  Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    TimerWheel wheel(kStart);
    Probe a;
    Probe b;
    const TimePoint first = kStart + Duration(rng.between(1, std::int64_t{1} << 44));
    const TimePoint second = kStart + Duration(rng.between(1, std::int64_t{1} << 44));
    wheel.arm(a.timer, first);
    wheel.arm(b.timer, second);
    int wakes = 0;
    while (a.count + b.count < 1) {
      const TimePoint wake = *wheel.next_wake();
      ASSERT_LT(wake, std::min(first, second) + TimerWheel::kTick);
      wheel.advance(wake);
      ASSERT_LE(++wakes, 8) << "a level opens at most once on the way";
    }
    wheel.cancel(a.timer);
    wheel.cancel(b.timer);
  }
}

TEST(TimerWheel, StormOfEqualDeadlinesFiresEachOnce) {
  TimerWheel wheel(kStart);
  std::vector<Probe> storm(100'000);
  for (Probe& probe : storm) wheel.arm(probe.timer, kStart + seconds(30));
  EXPECT_EQ(wheel.advance(kStart + seconds(31)), storm.size());
  for (const Probe& probe : storm) ASSERT_EQ(probe.count, 1);
}

struct Rearming {
  explicit Rearming(TimerWheel& w) : wheel(&w), timer(Timer::Fired::to<&Rearming::fired>(*this)) {}
  void fired(TimePoint now) {
    ++count;
    wheel->arm(timer, now);
  }
  TimerWheel* wheel;
  Timer timer;
  int count = 0;
};

TEST(TimerWheel, TimerThatRearmsForNowWaitsForTheNextTurn) {
  TimerWheel wheel(kStart);
  Rearming again(wheel);
  wheel.arm(again.timer, kStart + milliseconds(1));
  wheel.advance(kStart + milliseconds(500));
  EXPECT_LE(again.count, 2) << "once for its deadline, once for now";
  const int before = again.count;
  wheel.advance(kStart + milliseconds(501));
  wheel.advance(kStart + milliseconds(502));
  EXPECT_GT(again.count, before);
  wheel.cancel(again.timer);
}

struct Killer {
  explicit Killer(TimerWheel& w) : wheel(&w), timer(Timer::Fired::to<&Killer::fired>(*this)) {}
  void fired(TimePoint) {
    ++count;
    if (victim != nullptr) wheel->cancel(victim->timer);
    if (dies) delete this;
  }
  TimerWheel* wheel;
  Timer timer;
  Killer* victim = nullptr;
  int count = 0;
  bool dies = false;
};

TEST(TimerWheel, CallbackMayCancelAnotherOfTheSameTickAndDestroyItself) {
  TimerWheel wheel(kStart);
  auto* suicidal = new Killer(wheel);
  suicidal->dies = true;
  Killer first(wheel);
  Killer second(wheel);
  first.victim = &second;
  wheel.arm(suicidal->timer, kStart + milliseconds(3));
  wheel.arm(first.timer, kStart + milliseconds(3));
  wheel.arm(second.timer, kStart + milliseconds(3));
  EXPECT_EQ(wheel.advance(kStart + milliseconds(5)), 2U);
  EXPECT_EQ(first.count, 1);
  EXPECT_EQ(second.count, 0);
}

TEST(TimerWheel, DeadlineBeyondItsReachStillFiresOnTime) {
  TimerWheel wheel(kStart);
  Probe probe;
  const TimePoint deadline = kStart + hours(24 * 365 * 5);
  wheel.arm(probe.timer, deadline);
  wheel.advance(deadline - seconds(1));
  EXPECT_EQ(probe.count, 0);
  wheel.advance(deadline + milliseconds(1));
  EXPECT_EQ(probe.count, 1);
}

}  // namespace
}  // namespace weir::inline v0::io
