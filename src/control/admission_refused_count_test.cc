// Who is refused: each refusal of a request that was charged counts for its actor and its peer,
// whichever step refuses it and in whichever form it asked.
#include <utility>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

/// One place, held by the actor and the peer whose refusals are counted.
class RefusedCount : public ::testing::Test {
 protected:
  static AdmissionConfig config() {
    AdmissionConfig config = plain_config(1);
    config.total_bytes_max = 1000;
    return config;
  }
  [[nodiscard]] AdmissionRequest ours(Priority priority = Priority::kLow) const {
    AdmissionRequest request = request_of(priority);
    request.peer = controller.identify("node");
    request.actor = controller.identify("alice");
    return request;
  }
  /// One more refusal than before, of both.
  void expect_one_more() {
    ++expected;
    EXPECT_EQ(controller.top_actors(1).at(0).refused, expected);
    EXPECT_EQ(controller.top_peers(1).at(0).refused, expected);
  }

  AdmissionController controller{config(), Rng(1)};
  Permit held = controller.try_admit(ours(), kStart).value();
  std::uint64_t expected = 0;
};

TEST_F(RefusedCount, AnAdmittedRequestIsNone) {
  EXPECT_EQ(controller.top_actors(1).at(0).refused, 0U);
  std::move(held).finish(Outcome::kOk, kStart);
  held = controller.try_admit(ours(), kStart).value();
  EXPECT_EQ(controller.top_actors(1).at(0).refused, 0U);
}

TEST_F(RefusedCount, TheLimitRefuses) {
  EXPECT_FALSE(controller.try_admit(ours(), kStart).has_value());
  expect_one_more();
  Waiter waiter;
  EXPECT_EQ(controller.enter(ours(), waiter, kStart).kind, Entered::Kind::kRefused);
  expect_one_more();
  ScriptedParker parker([](TimePoint until) { return until; });
  EXPECT_FALSE(controller.admit(ours(Priority::kHigh), parker, kStart).has_value());
  expect_one_more();
}

TEST_F(RefusedCount, AWaiterExpires) {
  Waiter waiter;
  ASSERT_EQ(controller.enter(ours(Priority::kHigh), waiter, kStart).kind, Entered::Kind::kWaiting);
  EXPECT_EQ(controller.top_actors(1).at(0).refused, 0U) << "not yet";
  controller.expire(after_ms(500));
  EXPECT_FALSE(controller.collect(waiter, after_ms(500)).has_value());
  expect_one_more();
}

TEST_F(RefusedCount, AWaiterThatLeavesIsNotRefused) {
  Waiter waiter;
  ASSERT_EQ(controller.enter(ours(Priority::kHigh), waiter, kStart).kind, Entered::Kind::kWaiting);
  EXPECT_TRUE(controller.cancel(waiter));
  EXPECT_EQ(controller.top_actors(1).at(0).refused, 0U);
}

TEST_F(RefusedCount, TheBytesOfTheProcessRefuse) {
  AdmissionRequest large = ours();
  large.bytes = 600;
  const Permit half = controller
                          .try_admit(
                              [&] {
                                AdmissionRequest other = request_of(Priority::kCritical);
                                other.bytes = 600;
                                return other;
                              }(),
                              kStart)
                          .value();
  EXPECT_EQ(controller.try_admit(large, kStart).error(), Reason::kBytes);
  expect_one_more();
}

TEST_F(RefusedCount, TicketsAreRefusedByCapDeadlineAndLimit) {
  AdmissionRequest late = ours(Priority::kHigh);
  late.deadline = after_ms(100);
  Ticket ticket = controller.take_ticket(late, kStart).value();
  Waiter waiter;
  EXPECT_EQ(controller.enter(std::move(ticket), waiter, after_ms(200)).reason, Reason::kDeadline);
  expect_one_more();
  Ticket whole = controller.take_ticket(ours(), kStart).value();
  EXPECT_EQ(controller.enter(std::move(whole), waiter, kStart).reason, Reason::kOverload);
  expect_one_more();
  AdmissionConfig capped = controller.config();
  capped.classes.caps[index_of(Priority::kLow)] = 1;
  controller.reconfigure(capped);
  EXPECT_EQ(controller.take_ticket(ours(), kStart).error(), Reason::kClassLimit);
  expect_one_more();
}

}  // namespace
}  // namespace weir::inline v0::inline control
