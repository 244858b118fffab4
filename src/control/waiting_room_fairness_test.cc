// Turns among actors in the waiting room, and a full room. Virtual time, then threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "admission_testing.h"
#include "waiting_room.h"

namespace weir::inline v0::inline control {
namespace {

using Kind = Entered::Kind;

AdmissionConfig many_per_actor(std::uint32_t limit) {
  AdmissionConfig config = plain_config(limit);
  config.inflight_max = 10'000;
  return config;
}

class FairRoom : public ::testing::Test {
 protected:
  FairRoom() : controller(many_per_actor(1), Rng(1)) {
    held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  }
  void TearDown() override {
    for (auto& waiter : waiters) static_cast<void>(controller.cancel(*waiter));
    held = Permit();
    EXPECT_TRUE(all_is_given_back(controller));
  }

  [[nodiscard]] AdmissionRequest of(const std::string& actor,
                                    Priority priority = Priority::kNormal) const {
    AdmissionRequest request = request_of(priority);
    if (std::isdigit(static_cast<unsigned char>(actor[0])) != 0) {  // an address, not an actor
      request.source = static_cast<std::uint64_t>(actor[0]);
    } else if (!actor.empty()) {
      request.actor = controller.identify(actor);
    }
    return request;
  }
  Waiter& wait(const std::string& actor, Priority priority = Priority::kNormal) {
    waiters.push_back(std::make_unique<Waiter>());
    names[waiters.back().get()] = actor;
    EXPECT_EQ(controller.enter(of(actor, priority), *waiters.back(), kStart).kind, Kind::kWaiting);
    return *waiters.back();
  }
  /// Frees the unit again and again; returns the actors in the order in which they get it.
  std::string serve(std::size_t count) {
    std::string order;
    for (std::size_t i = 0; i < count; ++i) {
      held = Permit();
      for (auto& waiter : waiters) {
        if (waiter->state() != Waiter::State::kGranted) continue;
        held = controller.collect(*waiter, kStart).value();
        order += names[waiter.get()];
      }
    }
    return order;
  }
  void set_fair(Fairness fair) {
    AdmissionConfig config = controller.config();
    config.fair = fair;
    EXPECT_TRUE(controller.reconfigure(config).empty());
  }
  void set_room(std::uint32_t waiting_max) {
    AdmissionConfig config = controller.config();
    config.waiting_max = waiting_max;
    EXPECT_TRUE(controller.reconfigure(config).empty());
  }

  AdmissionController controller;
  Permit held;
  std::vector<std::unique_ptr<Waiter>> waiters;
  std::map<Waiter*, std::string> names;
};

TEST_F(FairRoom, PlacesGoByTurnsAmongActors) {
  for (const char* actor : {"e", "e", "e", "e", "a", "b", "a"}) wait(actor);
  EXPECT_EQ(serve(7), "eabeaee");
}

TEST_F(FairRoom, RequestsWithoutAnActorShareOneTurn) {
  for (const char* actor : {"", "", "", "a", "a"}) wait(actor);
  EXPECT_EQ(serve(5), "aa") << "nobody's name is empty";
  EXPECT_EQ(std::count_if(waiters.begin(), waiters.end(),
                          [](auto& w) { return w->state() == Waiter::State::kIdle; }),
            5);
}

TEST_F(FairRoom, RequestsWithoutAnActorTakeTurnsByTheirSource) {
  for (const char* who : {"1", "1", "1", "2", "a", "a"}) wait(who);
  EXPECT_EQ(serve(6), "12a1a1");
}

TEST_F(FairRoom, SwitchedOffSourcesHaveNoTurnsEither) {
  set_fair(Fairness::kOff);
  for (const char* who : {"1", "1", "1", "2"}) wait(who);
  EXPECT_EQ(serve(4), "1112");
}

TEST_F(FairRoom, HighComesFirstAndHasTurnsOfItsOwn) {
  for (const char* actor : {"e", "e", "a"}) wait(actor, Priority::kNormal);
  for (const char* actor : {"E", "E", "A"}) wait(actor, Priority::kHigh);
  EXPECT_EQ(serve(6), "EAEeae");
}

TEST_F(FairRoom, SwitchedOffItIsFirstComeFirstServed) {
  set_fair(Fairness::kOff);
  for (const char* actor : {"e", "e", "e", "a", "b", "a"}) wait(actor);
  EXPECT_EQ(serve(6), "eeeaba");
}

TEST_F(FairRoom, IsSwitchedWhileRequestsWaitAndNobodyIsLost) {
  for (const char* actor : {"e", "e", "a"}) wait(actor);
  set_fair(Fairness::kOff);
  for (const char* actor : {"e", "a"}) wait(actor);  // behind each other, in one more turn
  set_fair(Fairness::kActor);
  wait("a");
  EXPECT_EQ(serve(6), "eaeeaa");
}

TEST_F(FairRoom, TheTurnDoesNotPassToAnotherBecauseAWaiterLeaves) {
  for (const char* actor : {"e", "e", "a", "e", "a"}) wait(actor);
  EXPECT_TRUE(controller.cancel(*waiters[0]));
  EXPECT_EQ(serve(4), "eaea");
}

// ---- a full room

TEST_F(FairRoom, AFullRoomMakesPlaceForAnActorWithFewWaiters) {
  set_room(4);
  for (const char* actor : {"e", "e", "e", "e"}) wait(actor);
  Waiter another;
  EXPECT_EQ(controller.enter(of("e"), another, kStart).kind, Kind::kRefused) << "not for its own";
  wait("a");
  EXPECT_EQ(waiters[3]->state(), Waiter::State::kRefused) << "the newest of the longest flow";
  EXPECT_EQ(controller.collect(*waiters[3], kStart).error(), Reason::kOverload);
  wait("b");
  EXPECT_EQ(controller.collect(*waiters[2], kStart).error(), Reason::kOverload);
  wait("c");
  EXPECT_EQ(controller.collect(*waiters[1], kStart).error(), Reason::kOverload);
  EXPECT_EQ(controller.enter(of("d"), another, kStart).kind, Kind::kRefused) << "one each";
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).waiting, 4U);
  EXPECT_EQ(serve(4), "eabc");
}

TEST_F(FairRoom, ExplainKnowsThatPlaceIsMade) {
  set_room(3);
  for (const char* actor : {"e", "e", "e"}) wait(actor);
  EXPECT_EQ(controller.explain(of("e"), kStart).verdict, DecisionRecord::Verdict::kRefused);
  EXPECT_EQ(controller.explain(of("a"), kStart).verdict, DecisionRecord::Verdict::kWaits);
  EXPECT_EQ(waiters[2]->state(), Waiter::State::kWaiting) << "and changes nothing";
}

TEST_F(FairRoom, HighDisplacesNormalAndNormalNeverHigh) {
  set_room(3);
  for (const char* actor : {"e", "e", "e"}) wait(actor);
  for (const char* actor : {"A", "B"}) wait(actor, Priority::kHigh);
  EXPECT_EQ(controller.collect(*waiters[2], kStart).error(), Reason::kOverload);
  EXPECT_EQ(controller.collect(*waiters[1], kStart).error(), Reason::kOverload);
  set_room(5);
  for (const char* actor : {"A", "A"}) wait(actor, Priority::kHigh);
  Waiter another;
  EXPECT_EQ(controller.enter(of("n"), another, kStart).kind, Kind::kRefused);
  EXPECT_EQ(serve(5), "ABAAe");
}

TEST_F(FairRoom, WhoIsDisplacedIsToldByItsCallback) {
  set_room(2);
  ReadyFlag flag;
  Waiter displaced(&ReadyFlag::set, &flag);
  wait("e");
  ASSERT_EQ(controller.enter(of("e"), displaced, kStart).kind, Kind::kWaiting);
  wait("a");
  EXPECT_EQ(flag.calls.load(), 1);
  EXPECT_FALSE(controller.collect(displaced, kStart).has_value());
}

// ---- one actor with most of the demand

/// A server of ten places that each take 10 ms, with requests that come every 0.1 ms (ten times its
/// capacity), for `kSpan`. `who(i)` names the actor of request i. Returns admitted per actor.
template <class Who>
std::map<std::string, int> admitted_of(Fairness fair, Who who) {
  constexpr int kSteps = 100'000;  // 10 s
  AdmissionConfig config = many_per_actor(10);
  config.fair = fair;
  AdmissionController controller(config, Rng(1));
  struct One {
    std::string actor;
    std::unique_ptr<Waiter> waiter;
  };
  std::deque<One> line;
  std::deque<std::pair<TimePoint, Permit>> busy;
  std::map<std::string, int> admitted;
  const auto begin = [&](const std::string& actor, Permit permit, TimePoint now) {
    ++admitted[actor];
    busy.emplace_back(now + std::chrono::milliseconds(10), std::move(permit));
  };
  for (int i = 0; i < kSteps; ++i) {
    const TimePoint now = kStart + std::chrono::microseconds(100) * i;
    while (!busy.empty() && busy.front().first <= now) {
      std::move(busy.front().second).finish(Outcome::kOk, now);
      busy.pop_front();
    }
    controller.expire(now);
    for (auto it = line.begin(); it != line.end();) {
      if (it->waiter->state() == Waiter::State::kWaiting) {
        ++it;
        continue;
      }
      if (auto permit = controller.collect(*it->waiter, now)) {
        begin(it->actor, std::move(permit).value(), now);
      }
      it = line.erase(it);
    }
    AdmissionRequest request = request_of(Priority::kNormal);
    One one{who(i), std::make_unique<Waiter>()};
    request.actor = controller.identify(one.actor);
    Entered entered = controller.enter(request, *one.waiter, now);
    if (entered.kind == Kind::kAdmitted) begin(one.actor, std::move(entered.permit), now);
    if (entered.kind == Kind::kWaiting) line.push_back(std::move(one));
  }
  for (One& one : line) {
    if (!controller.cancel(*one.waiter)) {
      static_cast<void>(controller.collect(*one.waiter, kStart));
    }
  }
  return admitted;
}

TEST(FairAdmission, TwoActorsThatBothWantTooMuchGetHalfEachThoughOneAsksNineTimesAsOften) {
  const auto who = [](int i) { return std::string(i % 10 == 0 ? "small" : "large"); };
  // 10,000 places in 10 s; 10,000 requests of the small one, all of which would fit.
  std::map<std::string, int> by_turns = admitted_of(Fairness::kActor, who);
  EXPECT_NEAR(by_turns["small"] + by_turns["large"], 10'000, 100);
  EXPECT_NEAR(by_turns["small"], 5000, 250);
  std::map<std::string, int> by_arrival = admitted_of(Fairness::kOff, who);
  EXPECT_NEAR(by_arrival["small"], 1000, 250) << "a tenth of the demand, a tenth of the places";
}

TEST(FairAdmission, ActorsThatWantLessThanTheirShareGetAllOfItBesideOneWithNineTenths) {
  // One request in ten is of one of fifty small actors: each wants 2 % of the places.
  const auto who = [](int i) {
    return i % 10 != 0   ? std::string("large")
           : i % 20 == 0 ? std::string("medium")
                         : "small" + std::to_string(i / 20 % 50);
  };
  std::map<std::string, int> admitted = admitted_of(Fairness::kActor, who);
  int small = 0;
  for (int i = 0; i < 50; ++i) small += admitted["small" + std::to_string(i)];
  EXPECT_GT(small, 4900) << "of 5000";
  EXPECT_LT(admitted["large"], 3000);
  EXPECT_GT(admitted["medium"], 2000);
}

}  // namespace
}  // namespace weir::inline v0::inline control
