// A permit without units: a request that was admitted and cannot use the service now.
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

TEST(AdmissionUnits, AreFreeForOthersWhileTheyAreGivenBack) {
  AdmissionController controller(plain_config(4), Rng(1));
  const AdmissionRequest request = request_of(Priority::kNormal);
  std::vector<Permit> first = admit_all(controller, request, 4);
  EXPECT_FALSE(controller.try_admit(request, kStart));
  for (Permit& permit : first) permit.give_units_back(kStart);
  EXPECT_FALSE(first[0].has_units());
  EXPECT_EQ(controller.stats().in_flight, 0U);
  std::vector<Permit> second = admit_all(controller, request, 5);
  EXPECT_EQ(second.size(), 4U);
  EXPECT_FALSE(first[0].try_take_units()) << "the limit is reached";
  second.resize(1);
  EXPECT_TRUE(first[0].try_take_units());
  EXPECT_TRUE(first[0].try_take_units()) << "a second call changes nothing";
  EXPECT_FALSE(first[1].try_take_units()) << "the other half is for new requests";
  EXPECT_EQ(controller.stats().in_flight, 2U);
  EXPECT_TRUE(controller.try_admit(request, kStart));
  first.clear();
  second.clear();
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionUnits, TheActorAndTheBytesStayHeld) {
  AdmissionConfig config = plain_config(8);
  config.inflight_max = 1;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("ada");
  request.bytes = 10;
  Permit permit = controller.try_admit(request, kStart).value();
  permit.give_units_back(kStart);
  EXPECT_EQ(controller.try_admit(request, kStart).error(), Reason::kActorInflight);
  EXPECT_EQ(controller.stats().bytes, 10U);
  std::move(permit).finish(Outcome::kError, kStart);
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionUnits, AreFreeWhenTheServiceIsDoneWhateverTheClientReads) {
  AdmissionConfig config = plain_config(2);
  config.inflight_max = 2;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("ada");
  request.bytes = 10;
  std::vector<Permit> unread = admit_all(controller, request, 2);
  EXPECT_TRUE(unread[0].to_streaming(kStart));
  for (Permit& permit : unread) {
    EXPECT_FALSE(permit.served());
    permit.end_service(Outcome::kOk, kStart);
    permit.end_service(Outcome::kError, kStart);
    EXPECT_TRUE(permit.served());
    EXPECT_TRUE(permit.to_streaming(kStart)) << "nothing is left to move";
  }
  EXPECT_EQ(controller.stats().in_flight, 0U);
  EXPECT_EQ(controller.stats().streaming, 0U);
  EXPECT_EQ(controller.stats().bytes, 20U) << "what the client does not read is still held";
  EXPECT_EQ(controller.try_admit(request, kStart).error(), Reason::kActorInflight);
  request.actor = controller.identify("bob");
  EXPECT_EQ(admit_all(controller, request, 2).size(), 2U);
  std::move(unread[0]).finish(Outcome::kError, kStart);
  unread.clear();
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionUnits, ThatAreGivenBackGoToAWaiter) {
  AdmissionController controller(plain_config(1), Rng(1));
  const AdmissionRequest request = request_of(Priority::kNormal);
  Permit permit = controller.try_admit(request, kStart).value();
  Waiter waiter;
  ASSERT_EQ(controller.enter(request, waiter, kStart).kind, Entered::Kind::kWaiting);
  permit.give_units_back(kStart);
  ASSERT_EQ(waiter.state(), Waiter::State::kGranted);
  Permit granted = controller.collect(waiter, kStart).value();
  EXPECT_FALSE(permit.try_take_units());
  std::move(granted).finish(Outcome::kOk, kStart);
  EXPECT_TRUE(permit.try_take_units());
}

TEST(AdmissionUnits, AreTakenAgainBeforeAWaiterOfTheSameClass) {
  AdmissionController controller(plain_config(4), Rng(1));
  AdmissionRequest large = request_of(Priority::kNormal);
  large.cost = 4;
  Permit held = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  held.give_units_back(kStart);
  Permit other = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  Waiter waiter;
  ASSERT_EQ(controller.enter(large, waiter, kStart).kind, Entered::Kind::kWaiting);
  EXPECT_TRUE(held.try_take_units()) << "it was admitted earlier";
  EXPECT_TRUE(controller.cancel(waiter));
}

TEST(AdmissionUnits, HoldInTheBoundOfTheProcessToo) {
  AdmissionConfig config = plain_config(4);
  config.max_concurrent = 2;
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId second = controller.add_scope("second", config.limit);
  Permit a = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  a.give_units_back(kStart);
  std::vector<Permit> others = admit_all(controller, request_of(Priority::kNormal, second), 3);
  EXPECT_EQ(others.size(), 2U);
  EXPECT_FALSE(a.try_take_units());
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).in_flight, 0U);
  others.clear();
  EXPECT_TRUE(a.try_take_units());
  a = Permit();
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionUnits, CriticalOnesAreAlwaysTakenAgain) {
  AdmissionController controller(plain_config(1), Rng(1));
  Permit critical = controller.try_admit(request_of(Priority::kCritical), kStart).value();
  critical.give_units_back(kStart);
  Permit other = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  EXPECT_TRUE(critical.try_take_units());
}

}  // namespace
}  // namespace weir::inline v0::inline control
