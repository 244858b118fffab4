// Ten edge cases that an admission controller meets in production.
#include <array>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint32_t limit_of(const AdmissionController& controller) {
  return controller.scope_stats(ScopeId::kFirst, kStart).limit;
}

// 1
TEST(AdmissionEdgeCase, AllRequestsHighDegradesToFirstComeFirstServedWithABoundedWait) {
  AdmissionController controller(plain_config(2), Rng(1));
  std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 2);
  std::array<Waiter, 4> waiters;
  for (Waiter& w : waiters) {
    ASSERT_EQ(controller.enter(request_of(Priority::kHigh), w, kStart).kind,
              Entered::Kind::kWaiting);
  }
  full.pop_back();
  full.pop_back();
  Permit first = controller.collect(waiters[0], kStart).value();
  Permit second = controller.collect(waiters[1], kStart).value();
  controller.expire(after_ms(100));
  EXPECT_FALSE(controller.collect(waiters[2], after_ms(100)).has_value());
  EXPECT_FALSE(controller.collect(waiters[3], after_ms(100)).has_value());
}

// 2
TEST(AdmissionEdgeCase, UnreadableMemoryCountsAsZeroAndShedsNobody) {
  AdmissionController controller(small_config(), Rng(1));
  controller.set_memory(0.99, true);
  ASSERT_FALSE(controller.try_admit(request_of(Priority::kLow), kStart).has_value());
  controller.set_memory(0.99, false);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kLow), kStart).has_value());
  EXPECT_EQ(controller.stats().memory_usage, 0.0);
  EXPECT_FALSE(controller.stats().memory_readable);
}

// 3
TEST(AdmissionEdgeCase, ABaselineThatNoRequestEverSetConvergesOnceTrafficArrives) {
  AdmissionConfig config = plain_config(100);
  config.limit = vegas(50, 8);
  AdmissionController controller(config, Rng(1));
  controller.expire(kStart);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).baseline, Duration(0));  // unknown
  // The first request sets it; its own latency is the baseline, so the limit grows.
  Permit permit = controller.try_admit(request_of(Priority::kHigh), after_ms(10)).value();
  std::move(permit).finish(Outcome::kOk, after_ms(30));
  controller.expire(after_ms(1000));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).baseline, milliseconds(20));
  EXPECT_EQ(limit_of(controller), 51U);
}

// 4
TEST(AdmissionEdgeCase, ZeroRequestsInAWindowSkipTheAdjustment) {
  AdmissionConfig config = plain_config(100);
  config.limit = vegas(50, 8);
  AdmissionController controller(config, Rng(1));
  for (int s = 0; s <= 100; ++s) controller.expire(kStart + seconds(s));
  EXPECT_EQ(limit_of(controller), 50U);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).limit_reason, LimitReason::kNoSamples);
}

// 5
TEST(AdmissionEdgeCase, AHandlerThatThrowsReleasesItsPermit) {
  AdmissionController controller(small_config(), Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  request.bytes = 10;
  const auto handler = [&] {
    const Permit permit = controller.try_admit(request, kStart).value();
    throw std::runtime_error("the handler failed");
  };
  for (int i = 0; i < 100; ++i) EXPECT_THROW(handler(), std::runtime_error);
  EXPECT_TRUE(all_is_given_back(controller));
}

// 6
TEST(AdmissionEdgeCase, ARequestWithoutAPeerSkipsThePeersLimit) {
  AdmissionConfig config = plain_config(100);
  config.per_peer_limit = 1;
  AdmissionController controller(config, Rng(1));
  EXPECT_EQ(admit_all(controller, request_of(Priority::kNormal), 100).size(), 100U);
  EXPECT_EQ(controller.stats().peers, 0U);
}

// 7
TEST(AdmissionEdgeCase, ALoweredLimitRevokesNothingAndAdmitsNobodyUntilEnoughDrained) {
  AdmissionController controller(plain_config(10), Rng(1));
  std::vector<Permit> permits = admit_all(controller, request_of(Priority::kNormal), 10);
  AdmissionConfig config = controller.config();
  config.limit.initial_limit = 4;
  controller.reconfigure(config);
  EXPECT_EQ(limit_of(controller), 4U);
  EXPECT_EQ(controller.stats().in_flight, 10U);  // no request was cancelled
  while (permits.size() > 3) {
    EXPECT_FALSE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value())
        << permits.size();
    std::move(permits.back()).finish(Outcome::kOk, after_ms(1));
    permits.pop_back();
  }
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value());
}

// 8
TEST(AdmissionEdgeCase, APeersLimitAboveMaxConcurrentIsValidAndTheSmallerBinds) {
  AdmissionConfig config = plain_config(100);
  config.max_concurrent = 10;
  config.per_peer_limit = 64;
  ASSERT_TRUE(config.validate().empty());
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.peer = controller.identify("node");
  const std::vector<Permit> permits = admit_all(controller, request, 100);
  EXPECT_EQ(permits.size(), 10U);
  EXPECT_EQ(controller.try_admit(request, kStart).error(), Reason::kOverload);
}

// 9
TEST(AdmissionEdgeCase, RapidChangesOfPriorityByOnePeerAreEachJudgedAlone) {
  AdmissionController controller(small_config(), Rng(1));
  controller.set_memory(0.90, true);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.peer = controller.identify("node");
  for (int i = 0; i < 100; ++i) {
    request.priority = kPriorities[static_cast<std::size_t>(i) % kPriorityCount];
    EXPECT_EQ(controller.try_admit(request, kStart).has_value(), request.priority != Priority::kLow)
        << i;
  }
  EXPECT_TRUE(all_is_given_back(controller));
}

// 10: a margin between entering and leaving a level prevents flapping.
TEST(AdmissionEdgeCase, MemoryThatOscillatesAroundTheThresholdDoesNotFlap) {
  AdmissionController controller(small_config(), Rng(1));
  int changes = 0;
  bool shed = false;
  for (int i = 0; i < 100; ++i) {
    controller.set_memory(i % 2 == 0 ? 0.86 : 0.84, true);
    const bool now = !controller.try_admit(request_of(Priority::kLow), kStart).has_value();
    changes += now != shed ? 1 : 0;
    shed = now;
  }
  EXPECT_EQ(changes, 1);
  controller.set_memory(0.82, true);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kLow), kStart).has_value());
}

}  // namespace
}  // namespace weir::inline v0::inline control
