// The order of the checks and their results; one thread, virtual time.
#include "weir/control/admission_controller.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

using Permits = std::vector<Permit>;

void fill(AdmissionController& controller, Permits& permits, std::size_t count, Priority priority) {
  for (std::size_t i = 0; i < count; ++i) {
    auto permit = controller.try_admit(request_of(priority), kStart);
    ASSERT_TRUE(permit.has_value()) << i;
    permits.push_back(std::move(permit).value());
  }
}

TEST(AdmissionController, AdmitsUnderTheLimit) {
  AdmissionController controller(small_config(), Rng(1));
  auto permit = controller.try_admit(request_of(Priority::kNormal), kStart);
  ASSERT_TRUE(permit.has_value());
  EXPECT_EQ(controller.stats().in_flight, 1U);
  std::move(*permit).finish(Outcome::kOk, kStart + milliseconds(5));
  EXPECT_EQ(controller.stats().in_flight, 0U);
  EXPECT_EQ(controller.stats().admitted, 1U);
}

TEST(AdmissionController, RejectsWhenFull) {
  AdmissionController controller(small_config(), Rng(1));
  Permits permits;
  fill(controller, permits, 8, Priority::kNormal);
  const auto refused = controller.try_admit(request_of(Priority::kNormal), kStart);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), Reason::kOverload);
  EXPECT_EQ(controller.stats().rejected, 1U);
}

TEST(AdmissionController, LowPriorityIsRejectedImmediatelyWhenFull) {
  AdmissionController controller(small_config(), Rng(1));
  Permits permits;
  fill(controller, permits, 8, Priority::kNormal);
  Waiter waiter;
  const Entered entered = controller.enter(request_of(Priority::kLow), waiter, kStart);
  EXPECT_EQ(entered.kind, Entered::Kind::kRefused);
  EXPECT_EQ(entered.reason, Reason::kOverload);
}

TEST(AdmissionController, PermitReleaseAllowsTheNext) {
  AdmissionController controller(small_config(), Rng(1));
  Permits permits;
  fill(controller, permits, 8, Priority::kNormal);
  permits.pop_back();
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kNormal), kStart).has_value());
}

TEST(AdmissionController, PerPeerLimitHoldsForOnePeerAndLeavesOthersAlone) {
  AdmissionConfig config = small_config();
  config.max_concurrent = config.limit.initial_limit = config.limit.max_limit = 100;
  config.per_peer_limit = 3;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest from_a = request_of(Priority::kNormal);
  from_a.peer = controller.identify("peer_A");
  Permits permits;
  for (int i = 0; i < 3; ++i) permits.push_back(controller.try_admit(from_a, kStart).value());
  EXPECT_EQ(controller.try_admit(from_a, kStart).error(), Reason::kPeerLimit);
  AdmissionRequest from_b = from_a;
  from_b.peer = controller.identify("peer_B");
  EXPECT_TRUE(controller.try_admit(from_b, kStart).has_value());
}

TEST(AdmissionController, PeerCountDecrementsOnDrop) {
  AdmissionConfig config = small_config();
  config.per_peer_limit = 2;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest from_a = request_of(Priority::kNormal);
  from_a.peer = controller.identify("peer_A");
  Permit first = controller.try_admit(from_a, kStart).value();
  const Permit second = controller.try_admit(from_a, kStart).value();
  EXPECT_FALSE(controller.try_admit(from_a, kStart).has_value());
  first = Permit();
  EXPECT_TRUE(controller.try_admit(from_a, kStart).has_value());
}

TEST(AdmissionController, MemoryPressureShedsLowPriority) {
  AdmissionController controller(small_config(), Rng(1));
  controller.set_memory(0.90, true);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value());
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kNormal), kStart).has_value());
  EXPECT_EQ(controller.try_admit(request_of(Priority::kLow), kStart).error(), Reason::kMemory);
}

TEST(AdmissionController, MemoryCriticalAdmitsOnlyHigh) {
  AdmissionController controller(small_config(), Rng(1));
  controller.set_memory(0.96, true);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value());
  EXPECT_EQ(controller.try_admit(request_of(Priority::kNormal), kStart).error(), Reason::kMemory);
  EXPECT_EQ(controller.try_admit(request_of(Priority::kLow), kStart).error(), Reason::kMemory);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kCritical), kStart).has_value());
}

TEST(AdmissionController, HighWaitsAndIsHandedTheFreedUnitBeforeNormal) {
  AdmissionController controller(small_config(), Rng(1));
  Permits permits;
  fill(controller, permits, 8, Priority::kHigh);
  std::vector<int> order;
  struct Slot {
    std::vector<int>* order;
    int id;
  };
  Slot normal_slot{&order, 1};
  Slot high_slot{&order, 2};
  const auto ready = [](Waiter& w) noexcept {
    const auto* slot = static_cast<Slot*>(w.context());
    slot->order->push_back(slot->id);
  };
  Waiter normal(ready, &normal_slot);
  Waiter high(ready, &high_slot);
  EXPECT_EQ(controller.enter(request_of(Priority::kNormal), normal, kStart).kind,
            Entered::Kind::kWaiting);
  EXPECT_EQ(controller.enter(request_of(Priority::kHigh), high, kStart).kind,
            Entered::Kind::kWaiting);
  permits.pop_back();
  EXPECT_EQ(order, (std::vector<int>{2}));
  permits.pop_back();
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
  Permit h = controller.collect(high, kStart + milliseconds(3)).value();
  Permit n = controller.collect(normal, kStart + milliseconds(3)).value();
  EXPECT_EQ(controller.stats().in_flight, 8U);
}

TEST(AdmissionController, AWaiterIsRefusedWhenItsTierIsOver) {
  AdmissionController controller(small_config(), Rng(1));
  Permits permits;
  fill(controller, permits, 8, Priority::kHigh);
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  EXPECT_EQ(controller.next_expiry(), kStart + milliseconds(50));
  controller.expire(kStart + milliseconds(49));
  EXPECT_EQ(waiter.state(), Waiter::State::kWaiting);
  controller.expire(kStart + milliseconds(50));
  EXPECT_EQ(controller.collect(waiter, kStart + milliseconds(50)).error(), Reason::kOverload);
  EXPECT_EQ(controller.next_expiry(), TimePoint::max());
}

TEST(AdmissionController, StreamingFreesTheUnitAndKeepsTheActor) {
  AdmissionConfig config = small_config();
  config.limit.initial_limit = config.limit.min_limit = 1;
  config.inflight_max = 1;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest r = request_of(Priority::kHigh);
  r.actor = controller.identify("alice");
  r.bytes = 100;
  Permit stream = controller.try_admit(r, kStart).value();
  EXPECT_TRUE(stream.to_streaming(kStart + milliseconds(2)));
  EXPECT_EQ(controller.stats().in_flight, 0U);
  EXPECT_EQ(controller.stats().streaming, 1U);
  EXPECT_EQ(controller.stats().bytes, 100U);
  EXPECT_EQ(controller.try_admit(r, kStart).error(), Reason::kActorInflight);
  EXPECT_TRUE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value());
  std::move(stream).finish(Outcome::kOk, kStart + milliseconds(9));
  EXPECT_EQ(controller.stats().streaming, 0U);
  EXPECT_EQ(controller.stats().bytes, 0U);
}

TEST(AdmissionController, ABadConfigurationIsAnErrorThatNamesTheKey) {
  AdmissionConfig config = small_config();
  config.max_concurrent = 0;
  config.limit.min_limit = 20000;
  const auto created = AdmissionController::create(config, Rng(1));
  ASSERT_FALSE(created.has_value());
  ASSERT_EQ(created.error().size(), 2U);
  EXPECT_EQ(created.error()[0].key, "max_concurrent");
  EXPECT_EQ(created.error()[0].value, "0");
  EXPECT_EQ(created.error()[0].allowed, "1 to 16383");
  EXPECT_EQ(created.error()[1].key, "limit.min_limit");
}

TEST(AdmissionController, AGoodConfigurationMakesOneThatWorks) {
  auto created = AdmissionController::create(small_config(), Rng(1), nullptr, "mine");
  ASSERT_TRUE(created.has_value());
  AdmissionController& controller = **created;
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).name, "mine");
  EXPECT_TRUE(controller.try_admit({}, kStart));
}

TEST(AdmissionController, TheLoadOfAScopeIsThatOfItsStats) {
  AdmissionController controller(small_config(), Rng(1));
  const auto permit = controller.try_admit({}, kStart);
  ASSERT_TRUE(permit);
  const ScopeLoad load = controller.load(ScopeId::kFirst);
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(load.in_flight, 1U);
  EXPECT_EQ(load.in_flight, stats.in_flight);
  EXPECT_EQ(load.limit, stats.limit);
  EXPECT_EQ(load.waiting, stats.waiting);
}

TEST(AdmissionController, ABadReconfigurationChangesNothing) {
  AdmissionController controller(small_config(), Rng(1));
  AdmissionConfig next = small_config();
  next.inflight_max = 3;
  next.per_peer_limit = 0;
  const ConfigErrors errors = controller.reconfigure(next);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "per_peer_limit");
  EXPECT_EQ(controller.config(), small_config());
  next.per_peer_limit = 1;
  EXPECT_TRUE(controller.reconfigure(next).empty());
  EXPECT_EQ(controller.config().inflight_max, 3U);
}

TEST(AdmissionController, APermitThatAnExceptionEndsCountsAsError) {
  AdmissionController controller(small_config(), Rng(1));
  const auto errors = [&] { return controller.scope_stats(ScopeId::kFirst, kStart).errors; };
  try {
    const auto permit = controller.try_admit({}, kStart);
    ASSERT_TRUE(permit);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(errors(), 1U);
  EXPECT_EQ(controller.stats().in_flight, 0U);
  { const auto dropped = controller.try_admit({}, kStart); }
  EXPECT_EQ(errors(), 1U) << "destroyed without an exception: no outcome";
  auto failed = controller.try_admit({}, kStart);
  std::move(*failed).finish(Outcome::kError, kStart);
  EXPECT_EQ(errors(), 2U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
