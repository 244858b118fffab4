// The class word: caps, shares, the process-wide bound, waiter bits, critical overflow.
#include "class_gate.h"

#include <array>
#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

struct GateSetup {
  std::uint32_t limit = 100;
  std::uint32_t process_max = 0;
  ClassRules rules{};
  RuleModes modes{};
};

void set_up(ClassGate& gate, const GateSetup& setup) {
  gate.set_rules(setup.rules, setup.modes, setup.limit, setup.process_max);
}

// Takes until refused; returns how many were taken and, in `last`, what refused.
std::uint32_t take_all(ClassGate& gate, const ClassRequest& request, Take& last) {
  for (std::uint32_t taken = 0;; ++taken) {
    last = gate.try_take(request, {}, false).take;
    if (last != Take::kTaken) return taken;
  }
}
std::uint32_t take_all(ClassGate& gate, const ClassRequest& request) {
  Take last{};
  return take_all(gate, request, last);
}

TEST(ClassGate, EachClassFillsTheScopeUpToItsShare) {
  ClassGate gate;
  set_up(gate, {.limit = 100});
  EXPECT_EQ(take_all(gate, {Priority::kHigh, true, 1}), 50U);  // hedges
  EXPECT_EQ(take_all(gate, {Priority::kLow}), 25U);
  EXPECT_EQ(take_all(gate, {Priority::kNormal}), 15U);
  EXPECT_EQ(take_all(gate, {Priority::kHigh}), 10U);
  EXPECT_EQ(gate.counts().units, (std::array<std::uint32_t, 4>{0, 60, 15, 25}));
  EXPECT_EQ(gate.sheddable(), 100U);
  EXPECT_EQ(gate.bound(Priority::kHigh), 100U);
  EXPECT_EQ(gate.bound(Priority::kNormal), 90U);
  EXPECT_EQ(gate.bound(Priority::kLow), 75U);
}

TEST(ClassGate, AHedgeHasTheSmallerOfItsOwnAndItsClassesShare) {
  ClassGate gate;
  GateSetup setup{.limit = 100};
  setup.rules.share_low_permille = 300;
  set_up(gate, setup);
  EXPECT_EQ(take_all(gate, {Priority::kLow, true, 1}), 30U);
}

TEST(ClassGate, ACapHoldsItsClassAloneAndIsToldFromTheLimit) {
  ClassGate gate;
  GateSetup setup{.limit = 100};
  setup.rules.caps[index_of(Priority::kNormal)] = 30;
  set_up(gate, setup);
  Take why{};
  EXPECT_EQ(take_all(gate, {Priority::kNormal}, why), 30U);
  EXPECT_EQ(why, Take::kClassCap);
  EXPECT_EQ(take_all(gate, {Priority::kHigh}, why), 70U);
  EXPECT_EQ(why, Take::kLimit);
  EXPECT_EQ(gate.cap(Priority::kNormal), 30U);
  EXPECT_EQ(gate.cap(Priority::kHigh), 0U);
}

TEST(ClassGate, TheProcessWideBoundIsToldFromTheLimit) {
  ClassGate gate;
  set_up(gate, {.limit = 100, .process_max = 7});
  Take why{};
  EXPECT_EQ(take_all(gate, {Priority::kHigh}, why), 7U);
  EXPECT_EQ(why, Take::kProcess);
  EXPECT_EQ(gate.try_take({Priority::kCritical}, {}, false).take, Take::kTaken);
}

TEST(ClassGate, CostWeighsAndARequestDearerThanItsShareIsServedAlone) {
  ClassGate gate;
  set_up(gate, {.limit = 10});
  const ClassGate::Attempt dear = gate.try_take({Priority::kNormal, false, 1000}, {}, false);
  ASSERT_EQ(dear.take, Take::kTaken);
  EXPECT_EQ(dear.seat.units, 9U);  // the whole share of normal
  EXPECT_EQ(dear.in_flight, 9U);
  EXPECT_EQ(take_all(gate, {Priority::kNormal}), 0U);
  EXPECT_FALSE(gate.give_back(dear.seat, Priority::kNormal));
  EXPECT_EQ(take_all(gate, {Priority::kHigh, false, 3}), 3U);
  EXPECT_EQ(gate.sheddable(), 9U);
  EXPECT_EQ(gate.try_take({Priority::kHigh, false, 0}, {}, false).seat.units,
            1U);  // at least one unit
}

TEST(ClassGate, ACostAboveCapOrProcessBoundIsServedAloneToo) {
  ClassGate gate;
  GateSetup setup{.limit = 100, .process_max = 5};
  setup.rules.caps[index_of(Priority::kLow)] = 3;
  set_up(gate, setup);
  EXPECT_EQ(gate.try_take({Priority::kLow, false, 50}, {}, false).seat.units, 3U);
  EXPECT_EQ(gate.try_take({Priority::kHigh, false, 50}, {}, false).take, Take::kProcess);
  ClassGate empty;
  set_up(empty, setup);
  EXPECT_EQ(empty.try_take({Priority::kHigh, false, 50}, {}, false).seat.units, 5U);
}

TEST(ClassGate, ALowerLimitRefusesAtOnceAndWhatIsInFlightDrains) {
  ClassGate gate;
  set_up(gate, {.limit = 10});
  EXPECT_EQ(take_all(gate, {Priority::kHigh}), 10U);
  set_up(gate, {.limit = 4});
  EXPECT_EQ(gate.sheddable(), 10U);
  for (int left = 9; left >= 4; --left) {
    EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).take, Take::kLimit) << left;
    EXPECT_FALSE(gate.give_back({.units = 1}, Priority::kHigh));
  }
  EXPECT_FALSE(gate.give_back({.units = 1}, Priority::kHigh));
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).take, Take::kTaken);
}

TEST(ClassGate, CriticalIsCountedNeverComparedAndNeverRefused) {
  ClassGate gate;
  set_up(gate, {.limit = 1, .process_max = 1});
  constexpr std::uint32_t kMany = 20'000;  // more than its 14 bits hold
  std::vector<Seat> seats;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const ClassGate::Attempt attempt = gate.try_take({Priority::kCritical}, {}, false);
    ASSERT_EQ(attempt.take, Take::kTaken) << i;
    seats.push_back(attempt.seat);
  }
  EXPECT_EQ(gate.counts().of(Priority::kCritical), kMany);
  EXPECT_EQ(gate.sheddable(), 0U);
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).take, Take::kTaken);  // neighbours intact
  EXPECT_EQ(gate.sheddable(), 1U);
  // Given back in the order taken: the first fit the word, the last did not.
  for (const Seat& seat : seats) EXPECT_FALSE(gate.give_back(seat, Priority::kCritical));
  EXPECT_EQ(gate.counts().of(Priority::kCritical), 0U);
  EXPECT_EQ(gate.sheddable(), 1U);
}

TEST(ClassGate, WaiterBitsHoldBackNewcomersOfTheirClassAndBelow) {
  ClassGate gate;
  set_up(gate, {.limit = 100});
  gate.set_waiting(true, false);
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kNormal}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kLow}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kHigh, true, 1}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, true).take, Take::kTaken);  // for the waiting room
  EXPECT_TRUE(gate.give_back({.units = 1}, Priority::kHigh));  // and it must be pumped
  gate.set_waiting(false, true);
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).take, Take::kTaken);
  EXPECT_EQ(gate.try_take({Priority::kHigh, true, 1}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kNormal}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kLow}, {}, false).take, Take::kLimit);
  EXPECT_EQ(gate.try_take({Priority::kCritical}, {}, false).take, Take::kTaken);
  gate.set_waiting(false, false);
  EXPECT_FALSE(gate.give_back({.units = 1}, Priority::kHigh));
  EXPECT_EQ(gate.try_take({Priority::kLow}, {}, false).take, Take::kTaken);
}

TEST(ClassGate, OperatorStateFollowsTheBounds) {
  ClassGate gate;
  set_up(gate, {.limit = 100});
  EXPECT_EQ(gate.state(), OperatorState::kHealthy);
  EXPECT_EQ(take_all(gate, {Priority::kLow}), 75U);
  EXPECT_EQ(gate.state(), OperatorState::kPressured);
  EXPECT_EQ(take_all(gate, {Priority::kNormal}), 15U);
  EXPECT_EQ(gate.state(), OperatorState::kOverloaded);
}

// ---- rules that are off or in shadow mode

TEST(ClassGate, ARuleInShadowCountsTakesAndSaysWhatItWouldHaveDone) {
  ClassGate gate;
  GateSetup setup{.limit = 2, .process_max = 3};
  setup.modes.limit = RuleMode::kShadow;
  set_up(gate, setup);
  constexpr std::array kWould = {Take::kTaken, Take::kTaken, Take::kLimit, Take::kLimit};
  for (const Take would : kWould) {
    const ClassGate::Attempt attempt = gate.try_take({Priority::kHigh}, {}, false);
    EXPECT_EQ(attempt.take, Take::kTaken);
    EXPECT_EQ(attempt.would, would);
  }
  EXPECT_EQ(gate.sheddable(), 4U);
}

TEST(ClassGate, TheProcessWideBoundInShadowSaysSo) {
  ClassGate gate;
  GateSetup setup{.limit = 100, .process_max = 1};
  setup.modes.limit = RuleMode::kShadow;
  set_up(gate, setup);
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).would, Take::kTaken);
  EXPECT_EQ(gate.try_take({Priority::kHigh}, {}, false).would, Take::kProcess);
}

TEST(ClassGate, ARuleThatIsOffSaysNothingAndStillCounts) {
  ClassGate gate;
  GateSetup setup{.limit = 1, .process_max = 1};
  setup.rules.caps[index_of(Priority::kHigh)] = 1;
  setup.modes.limit = setup.modes.class_cap = RuleMode::kOff;
  set_up(gate, setup);
  for (int i = 0; i < 5; ++i) {
    const ClassGate::Attempt attempt = gate.try_take({Priority::kHigh}, {}, false);
    EXPECT_EQ(attempt.take, Take::kTaken);
    EXPECT_EQ(attempt.would, Take::kTaken);
  }
  EXPECT_EQ(gate.sheddable(), 5U);
}

// A rule in shadow mode must not disable the other rule, nor let new requests overtake.
TEST(ClassGate, WithTheCapInShadowLimitProcessBoundAndOrderStillHold) {
  GateSetup setup{.limit = 10, .process_max = 4};
  setup.modes.class_cap = RuleMode::kShadow;
  ClassGate by_process;
  set_up(by_process, setup);
  Take why{};
  EXPECT_EQ(take_all(by_process, {Priority::kHigh}, why), 4U);
  EXPECT_EQ(why, Take::kProcess);
  setup.process_max = 0;
  ClassGate by_limit;
  set_up(by_limit, setup);
  EXPECT_EQ(take_all(by_limit, {Priority::kHigh}, why), 10U);
  EXPECT_EQ(why, Take::kLimit);
  ClassGate waited_for;
  set_up(waited_for, setup);
  waited_for.set_waiting(true, false);
  EXPECT_EQ(waited_for.try_take({Priority::kHigh}, {}, false).take, Take::kLimit);
  EXPECT_EQ(waited_for.try_take({Priority::kHigh}, {}, true).take, Take::kTaken);
}

TEST(ClassGate, WithTheLimitInShadowTheCapStillHolds) {
  ClassGate gate;
  GateSetup setup{.limit = 2};
  setup.rules.caps[index_of(Priority::kHigh)] = 5;
  setup.modes.limit = RuleMode::kShadow;
  set_up(gate, setup);
  Take why{};
  EXPECT_EQ(take_all(gate, {Priority::kHigh}, why), 5U);
  EXPECT_EQ(why, Take::kClassCap);
}

TEST(ClassGate, BeyondItsFourteenBitsAnUnenforcedClassPassesUncounted) {
  ClassGate gate;
  GateSetup setup{.limit = 10};
  setup.modes.limit = RuleMode::kOff;
  set_up(gate, setup);
  for (std::uint32_t i = 0; i < kClassUnitsMax; ++i) {
    ASSERT_EQ(gate.try_take({Priority::kNormal}, {}, false).seat.units, 1U);
  }
  const ClassGate::Attempt beyond = gate.try_take({Priority::kNormal}, {}, false);
  EXPECT_EQ(beyond.take, Take::kTaken);
  EXPECT_EQ(beyond.seat.units, 0U);
  EXPECT_FALSE(gate.give_back(beyond.seat, Priority::kNormal));
  EXPECT_EQ(gate.counts().of(Priority::kNormal), kClassUnitsMax);
  EXPECT_EQ(gate.counts().of(Priority::kLow), 0U);
}

// ---- threads

// All classes at once at one bound: the sum never exceeds it, and everything is given back.
TEST(ClassGate, NoInterleavingPassesABound) {
  constexpr int kEach = rounds(100'000);
  constexpr std::uint32_t kLimit = 6;
  ClassGate gate;
  GateSetup setup{.limit = kLimit};
  setup.rules.caps[index_of(Priority::kLow)] = 2;
  set_up(gate, setup);
  std::atomic<std::uint32_t> held{0};
  std::atomic<std::uint32_t> held_low{0};
  std::atomic<int> exceeded{0};
  run_together(4, [&](std::size_t t) {
    const Priority priority = t < 2 ? Priority::kLow : t == 2 ? Priority::kNormal : Priority::kHigh;
    const std::uint32_t cost = t == 3 ? 3 : 1;
    for (int i = 0; i < kEach; ++i) {
      const ClassGate::Attempt attempt = gate.try_take({priority, false, cost}, {}, false);
      if (attempt.take != Take::kTaken) continue;
      const std::uint32_t units = attempt.seat.units;
      if (held.fetch_add(units) + units > kLimit) exceeded.fetch_add(1);
      if (priority == Priority::kLow && held_low.fetch_add(1) + 1 > 2) exceeded.fetch_add(1);
      if (priority == Priority::kLow) held_low.fetch_sub(1);
      held.fetch_sub(units);
      static_cast<void>(gate.give_back(attempt.seat, priority));
    }
  });
  EXPECT_EQ(exceeded.load(), 0);
  EXPECT_EQ(gate.sheddable(), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
