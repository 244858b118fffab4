// Which events the event sink receives, and how often.
#include "weir/control/admission_events.h"

#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Records all events; names are copied, because they are valid only during the call.
class Recorder final : public EventSink {
 public:
  void on_limit_change(const LimitChange& e) noexcept override {
    const std::scoped_lock lock(mutex_);
    limits.push_back(e);
    scopes.emplace_back(e.scope);
  }
  void on_refusals(const RefusalNotice& e) noexcept override {
    const std::scoped_lock lock(mutex_);
    refusals.push_back(e);
    scopes.emplace_back(e.scope);
    peers.emplace_back(e.peer);
  }
  void on_class_warning(const ClassWarning& e) noexcept override {
    const std::scoped_lock lock(mutex_);
    warnings.push_back(e);
    scopes.emplace_back(e.scope);
  }
  void on_memory(const MemoryNotice& e) noexcept override {
    const std::scoped_lock lock(mutex_);
    memory.push_back(e);
  }

  std::vector<LimitChange> limits;
  std::vector<RefusalNotice> refusals;
  std::vector<ClassWarning> warnings;
  std::vector<MemoryNotice> memory;
  std::vector<std::string> scopes;
  std::vector<std::string> peers;  // of refusals

 private:
  std::mutex mutex_;
};

TEST(AdmissionEvents, ALimitChangeCarriesOldNewEstimateAverageAndMinimum) {
  Recorder events;
  AdmissionConfig config = plain_config(100);
  config.limit.policy = LimitKind::kVegas;
  config.limit.initial_limit = 50;
  AdmissionController controller(config, Rng(1), &events);
  controller.expire(kStart);
  Permit quick = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  std::move(quick).finish(Outcome::kOk, after_ms(5));
  controller.expire(after_ms(1000));  // baseline 5 ms, no queue: 51
  {
    // 40 in flight at the tick, and the one that finished took 50 ms: a queue of 36.
    std::vector<Permit> running =
        admit_all(controller, request_of(Priority::kNormal), 41, after_ms(1100));
    std::move(running.back()).finish(Outcome::kOk, after_ms(1150));
    controller.expire(after_ms(2000));
  }
  ASSERT_EQ(events.limits.size(), 2U);
  EXPECT_EQ(events.limits[0].old_limit, 50U);
  EXPECT_EQ(events.limits[0].new_limit, 51U);
  EXPECT_EQ(events.limits[0].reason, LimitReason::kGrow);
  const LimitChange& down = events.limits[1];
  EXPECT_EQ(down.old_limit, 51U);
  EXPECT_EQ(down.new_limit, 50U);
  EXPECT_DOUBLE_EQ(down.queue_estimate, 36.0);
  EXPECT_EQ(down.latency_avg, milliseconds(50));
  EXPECT_EQ(down.latency_min, milliseconds(5));
  EXPECT_EQ(down.reason, LimitReason::kQueueing);
  EXPECT_EQ(events.scopes[1], "default");
}

TEST(AdmissionEvents, AWindowIsClosedByTrafficAsWellAsByExpire) {
  Recorder events;
  AdmissionConfig config = plain_config(100);
  config.limit.policy = LimitKind::kVegas;
  config.limit.initial_limit = 50;
  AdmissionController controller(config, Rng(1), &events);
  for (int i = 0; i <= 10; ++i) {  // without calls of expire()
    Permit permit = controller.try_admit(request_of(Priority::kNormal), after_ms(200 * i)).value();
    std::move(permit).finish(Outcome::kOk, after_ms(200 * i + 10));
  }
  EXPECT_EQ(events.limits.size(), 2U);
}

TEST(AdmissionEvents, RefusalsAreToldOncePerScopeReasonAndSecond) {
  Recorder events;
  AdmissionController controller(plain_config(1), Rng(1), &events);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  AdmissionRequest late = request_of(Priority::kNormal);
  late.deadline = kStart;
  for (int ms = 0; ms < 3000; ++ms) {
    EXPECT_FALSE(controller.try_admit(request_of(Priority::kLow), after_ms(ms)).has_value());
    if (ms != 10) continue;
    EXPECT_FALSE(controller.try_admit(late, after_ms(ms)).has_value());
  }
  ASSERT_EQ(events.refusals.size(), 4U);
  EXPECT_EQ(events.refusals[0].reason, Reason::kOverload);
  EXPECT_EQ(events.refusals[0].count, 1U);
  EXPECT_EQ(events.refusals[0].priority, Priority::kLow);
  EXPECT_EQ(events.scopes[0], "default");
  EXPECT_EQ(events.refusals[1].reason, Reason::kDeadline);
  EXPECT_EQ(events.refusals[1].priority, Priority::kNormal);
  EXPECT_EQ(events.refusals[2].count, 1000U);
  EXPECT_EQ(events.refusals[3].count, 1000U);
}

TEST(AdmissionEvents, RefusalsOfOneScopeHideNoneOfAnother) {
  Recorder events;
  AdmissionConfig config = plain_config(1);
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1), &events, "a");
  const ScopeId second = controller.add_scope("b", config.limit);
  AdmissionRequest late = request_of(Priority::kNormal);
  late.deadline = kStart;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(controller.try_admit(late, after_ms(i)).has_value());
  late.scope = second;
  EXPECT_FALSE(controller.try_admit(late, after_ms(6)).has_value());
  ASSERT_EQ(events.refusals.size(), 2U);
  EXPECT_EQ(events.scopes[1], "b");
  EXPECT_EQ(events.refusals[1].count, 1U) << "those of the other scope are not its own";
}

TEST(AdmissionEvents, ARefusalCarriesPeerInFlightLimitAndMemory) {
  Recorder events;
  AdmissionConfig config = plain_config(5);
  config.per_peer_limit = 2;
  AdmissionController controller(config, Rng(1), &events);
  controller.set_memory(0.5, true);
  AdmissionRequest ask = request_of(Priority::kHigh);
  ask.peer = controller.identify("edge-1");
  const std::vector<Permit> two = admit_all(controller, ask, 2);
  EXPECT_FALSE(controller.try_admit(ask, kStart).has_value());
  const std::vector<Permit> rest = admit_all(controller, request_of(Priority::kHigh), 3);
  EXPECT_FALSE(controller.try_admit(request_of(Priority::kHigh), kStart).has_value());
  ASSERT_EQ(events.refusals.size(), 2U);
  EXPECT_EQ(events.refusals[0].reason, Reason::kPeerLimit);
  EXPECT_EQ(events.peers[0], "edge-1");
  EXPECT_EQ(events.refusals[0].in_flight, 2U);
  EXPECT_EQ(events.refusals[0].limit, 2U);
  EXPECT_EQ(events.refusals[0].memory_usage, 0.5);
  EXPECT_EQ(events.refusals[1].reason, Reason::kOverload);
  EXPECT_EQ(events.peers[1], "");
  EXPECT_EQ(events.refusals[1].in_flight, 5U);
  EXPECT_EQ(events.refusals[1].limit, 5U);
}

TEST(AdmissionEvents, AMemoryLevelIsToldWhenItChanges) {
  Recorder events;
  AdmissionController controller(plain_config(10), Rng(1), &events);
  for (const double usage : {0.5, 0.86, 0.87, 0.96, 0.97, 0.5, 0.4}) {
    controller.set_memory(usage, true);
  }
  ASSERT_EQ(events.memory.size(), 3U);
  EXPECT_EQ(events.memory[0].level, MemoryLevel::kPressured);
  EXPECT_EQ(events.memory[0].usage, 0.86);
  EXPECT_EQ(events.memory[1].level, MemoryLevel::kCritical);
  EXPECT_EQ(events.memory[2].level, MemoryLevel::kNormal);
}

TEST(AdmissionEvents, ARefusalForMemorySaysHowFullItIs) {
  Recorder events;
  AdmissionController controller(plain_config(10), Rng(1), &events);
  controller.set_memory(0.97, true);
  EXPECT_FALSE(controller.try_admit(request_of(Priority::kNormal), kStart).has_value());
  ASSERT_EQ(events.refusals.size(), 1U);
  EXPECT_EQ(events.refusals[0].reason, Reason::kMemory);
  EXPECT_EQ(events.refusals[0].memory_usage, 0.97);
}

TEST(AdmissionEvents, AWaiterThatExpiresIsARefusalLikeAnyOther) {
  Recorder events;
  AdmissionController controller(plain_config(1), Rng(1), &events);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  EXPECT_TRUE(events.refusals.empty());
  controller.expire(after_ms(50));
  EXPECT_FALSE(controller.collect(waiter, after_ms(50)).has_value());
  ASSERT_EQ(events.refusals.size(), 1U);
  EXPECT_EQ(events.refusals[0].reason, Reason::kOverload);
}

TEST(AdmissionEvents, AClassAtFourFifthsOfItsBoundIsWarnedAboutOncePerSecond) {
  Recorder events;
  AdmissionController controller(plain_config(10), Rng(1), &events);
  std::vector<Permit> permits = admit_all(controller, request_of(Priority::kNormal), 7);
  controller.expire(kStart);
  EXPECT_TRUE(events.warnings.empty());
  permits.push_back(controller.try_admit(request_of(Priority::kNormal), kStart).value());
  controller.expire(after_ms(1));
  ASSERT_EQ(events.warnings.size(), 1U);
  EXPECT_EQ(events.warnings[0].priority, Priority::kNormal);
  EXPECT_EQ(events.warnings[0].in_flight, 8U);
  EXPECT_EQ(events.warnings[0].bound, 10U);
  for (int ms = 2; ms <= 1000; ms += 50) controller.expire(after_ms(ms));
  EXPECT_EQ(events.warnings.size(), 1U);
  controller.expire(after_ms(1001));
  EXPECT_EQ(events.warnings.size(), 2U);
}

TEST(AdmissionEvents, AClassWithACapIsWarnedAboutByItsCap) {
  Recorder events;
  AdmissionConfig config = plain_config(100);
  config.classes.caps[index_of(Priority::kLow)] = 10;
  config.warn_threshold = 0.5;
  AdmissionController controller(config, Rng(1), &events);
  const std::vector<Permit> low = admit_all(controller, request_of(Priority::kLow), 5);
  controller.expire(kStart);
  ASSERT_EQ(events.warnings.size(), 1U);
  EXPECT_EQ(events.warnings[0].priority, Priority::kLow);
  EXPECT_EQ(events.warnings[0].in_flight, 5U);
  EXPECT_EQ(events.warnings[0].bound, 10U);
}

TEST(AdmissionEvents, MemoryThatCannotBeReadIsToldOnceAndSoIsItsReturn) {
  Recorder events;
  AdmissionController controller(plain_config(10), Rng(1), &events);
  for (int i = 0; i < 10; ++i) controller.set_memory(0.5, true);
  EXPECT_TRUE(events.memory.empty());
  for (int i = 0; i < 10; ++i) controller.set_memory(0.9, false);
  ASSERT_EQ(events.memory.size(), 1U);
  EXPECT_FALSE(events.memory[0].readable);
  EXPECT_EQ(events.memory[0].usage, 0.0);
  for (int i = 0; i < 10; ++i) controller.set_memory(0.6, true);
  ASSERT_EQ(events.memory.size(), 2U);
  EXPECT_TRUE(events.memory[1].readable);
  EXPECT_EQ(events.memory[1].usage, 0.6);
}

TEST(AdmissionEvents, ThreadsThatRefuseTogetherLoseNoCount) {
  constexpr int kEach = rounds(20'000);
  Recorder events;
  AdmissionController controller(plain_config(1), Rng(1), &events);
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  run_together(4, [&](std::size_t) {
    for (int i = 0; i < kEach; ++i) {
      static_cast<void>(
          controller.try_admit(request_of(Priority::kLow), kStart + seconds(i / 100)));
    }
  });
  EXPECT_FALSE(
      controller.try_admit(request_of(Priority::kLow), kStart + seconds(kEach)).has_value());
  std::uint64_t told = 0;
  for (const RefusalNotice& e : events.refusals) told += e.count;
  EXPECT_EQ(told, std::uint64_t{4} * kEach + 1);
  EXPECT_LE(events.refusals.size(), static_cast<std::size_t>(kEach / 100 + 2));
  EXPECT_EQ(controller.stats().rejected, told);
}

}  // namespace
}  // namespace weir::inline v0::inline control
