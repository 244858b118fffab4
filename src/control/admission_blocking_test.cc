// The blocking form, with parkers that block in virtual time.
#include <utility>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

class BlockingTest : public ::testing::Test {
 protected:
  BlockingTest() : controller(plain_config(1), Rng(1)) {
    full = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  }
  AdmissionController controller;
  Permit full;
};

TEST_F(BlockingTest, ReturnsAtOnceWhenThereIsRoomOrNoHope) {
  ScriptedParker parker([](TimePoint until) { return until; });
  EXPECT_FALSE(controller.admit(request_of(Priority::kLow), parker, kStart).has_value());
  EXPECT_TRUE(controller.admit(request_of(Priority::kCritical), parker, kStart).has_value());
  AdmissionConfig config = controller.config();
  config.waiting_max = 0;
  controller.reconfigure(config);
  EXPECT_EQ(controller.admit(request_of(Priority::kHigh), parker, kStart).error(),
            Reason::kOverload);
  full = Permit();
  EXPECT_TRUE(controller.admit(request_of(Priority::kHigh), parker, kStart).has_value());
  EXPECT_EQ(parker.parks, 0);
  EXPECT_EQ(parker.unparks, 0);
}

TEST_F(BlockingTest, SleepsUntilAUnitComesFree) {
  ScriptedParker parker([&](TimePoint until) {
    EXPECT_EQ(until, after_ms(50));
    std::move(full).finish(Outcome::kOk, after_ms(20));
    return after_ms(20);
  });
  const auto permit = controller.admit(request_of(Priority::kNormal), parker, kStart);
  ASSERT_TRUE(permit.has_value());
  EXPECT_EQ(permit->granted_at(), after_ms(20));
  EXPECT_EQ(parker.parks, 1);
  EXPECT_EQ(parker.unparks, 1);
  EXPECT_EQ(controller.stats().admitted, 2U);
}

TEST_F(BlockingTest, GivesUpAtTheEndOfItsTier) {
  for (const auto& [priority, tier] :
       {std::pair(Priority::kHigh, milliseconds(100)), {Priority::kNormal, milliseconds(50)}}) {
    TimePoint asked{};
    ScriptedParker parker([&](TimePoint until) { return asked = until; });
    EXPECT_EQ(controller.admit(request_of(priority), parker, kStart).error(), Reason::kOverload);
    EXPECT_EQ(asked, kStart + tier);
    EXPECT_EQ(parker.parks, 1);
  }
  EXPECT_EQ(controller.stats().rejected, 2U);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).waiting, 0U);
}

TEST_F(BlockingTest, GivesUpAtItsDeadlineAndSaysSo) {
  ScriptedParker parker([](TimePoint until) { return until; });
  AdmissionRequest request = request_of(Priority::kHigh);
  request.deadline = after_ms(30);
  EXPECT_EQ(controller.admit(request, parker, kStart).error(), Reason::kDeadline);
}

TEST_F(BlockingTest, ParksAgainAfterASpuriousReturn) {
  int left = 3;
  ScriptedParker parker([&](TimePoint) {
    if (--left == 0) std::move(full).finish(Outcome::kOk, after_ms(10));
    return after_ms(10);
  });
  EXPECT_TRUE(controller.admit(request_of(Priority::kNormal), parker, kStart).has_value());
  EXPECT_EQ(parker.parks, 3);
}

TEST_F(BlockingTest, AUnitThatComesAtTheLastInstantIsTaken) {
  ScriptedParker parker([&](TimePoint until) {
    full = Permit();  // granted, though the thread wakes only at its timeout
    return until;
  });
  EXPECT_TRUE(controller.admit(request_of(Priority::kNormal), parker, kStart).has_value());
}

TEST_F(BlockingTest, WhoeverSleepsPastItsTierAndIsExpiredByOthersIsRefusedOnce) {
  ScriptedParker parker([&](TimePoint until) {
    controller.expire(until);
    return until;
  });
  EXPECT_EQ(controller.admit(request_of(Priority::kNormal), parker, kStart).error(),
            Reason::kOverload);
  EXPECT_EQ(parker.unparks, 1);
  EXPECT_EQ(controller.stats().rejected, 1U);
}

TEST_F(BlockingTest, HoldsItsActorsPlaceWhileItSleepsAndGivesItBack) {
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  request.bytes = 100;
  ScriptedParker parker([&](TimePoint until) {
    EXPECT_EQ(controller.stats().bytes, 100U);
    EXPECT_EQ(controller.top_actors(1).at(0).in_flight, 1U);
    EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).waiting, 1U);
    return until;
  });
  EXPECT_FALSE(controller.admit(request, parker, kStart).has_value());
  full = Permit();
  EXPECT_TRUE(all_is_given_back(controller));
}

}  // namespace
}  // namespace weir::inline v0::inline control
