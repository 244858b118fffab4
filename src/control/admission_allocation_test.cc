// Counts allocations: there are none on the data path.
#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"
#include "base/allocation_probe.h"

namespace weir::inline v0::inline control {
namespace {

class QuietSink final : public EventSink {};

class NoAllocationTest : public ::testing::Test {
 protected:
  NoAllocationTest() {
    AdmissionConfig config = plain_config(2);
    config.scopes_max = 2;
    controller = std::make_unique<AdmissionController>(config, Rng(1), &sink);
    static_cast<void>(controller->add_scope("other", config.limit));
  }
  void SetUp() override {
    if (!allocations_are_counted()) GTEST_SKIP() << "operator new belongs to the sanitizer";
  }
  [[nodiscard]] AdmissionRequest request(int i, Priority priority) const {
    AdmissionRequest r = request_of(priority, static_cast<ScopeId>(i % 2));
    r.actor = controller->identify(names[static_cast<std::size_t>(i) % names.size()]);
    r.peer = controller->identify("node");
    r.bytes = 100;
    return r;
  }

  QuietSink sink;
  std::unique_ptr<AdmissionController> controller;
  std::array<std::string, 3> names = {"alice", "bob", std::string(5000, 'c')};
};

TEST_F(NoAllocationTest, DecidingFinishingStreamingAndGrowingAllocateNothing) {
  const std::size_t before = allocations_so_far();
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Priority priority = kPriorities[static_cast<std::size_t>(i) % 4];
    auto first = controller->try_admit(request(i, priority), after_ms(i));
    auto second = controller->try_admit(request(i, priority), after_ms(i));
    auto third = controller->try_admit(request(i, priority), after_ms(i));
    refused += third ? 0 : 1;
    if (first && first->try_grow(10)) first->shrink(5);
    if (second && second->to_streaming(after_ms(i))) {
      std::move(*second).finish(Outcome::kOk, after_ms(i + 1));
    }
    if (first) std::move(*first).finish(static_cast<Outcome>(i % 4), after_ms(i + 1));
    if (i % 100 == 0) controller->expire(after_ms(i));  // windows close, warnings are due
  }
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_GT(refused, 0);
  EXPECT_GT(controller->stats().admitted, 10'000U);
}

TEST_F(NoAllocationTest, WaitingByCallbackAndByBlockingAllocatesNothing) {
  Permit first;
  ScriptedParker parker([&first](TimePoint until) {
    first = Permit();
    return until - Duration(1);
  });
  std::array<Waiter, 3> waiters;
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 2000; i += 2) {
    const TimePoint now = after_ms(i);
    first = controller->try_admit(request(i, Priority::kHigh), now).value();
    Permit second = controller->try_admit(request(i, Priority::kHigh), now).value();
    for (Waiter& w : waiters) {
      ASSERT_EQ(controller->enter(request(i, Priority::kNormal), w, now).kind,
                Entered::Kind::kWaiting);
    }
    EXPECT_TRUE(controller->cancel(waiters[0]));
    second = Permit();
    EXPECT_TRUE(controller->collect(waiters[1], now).has_value());
    EXPECT_TRUE(controller->collect(waiters[2], now).has_value());  // with the unit just given back
    second = controller->try_admit(request(i, Priority::kHigh), now).value();
    EXPECT_TRUE(controller->admit(request(i, Priority::kHigh), parker, now).has_value());
  }
  EXPECT_EQ(allocations_so_far(), before);
}

TEST_F(NoAllocationTest, StatisticsMemoryReadingsAndHintsAllocateNothing) {
  const Permit held = controller->try_admit(request(0, Priority::kHigh), kStart).value();
  Rng rng(1);
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 1000; ++i) {
    controller->set_memory(i % 2 == 0 ? 0.9 : 0.1, i % 3 != 0);
    static_cast<void>(controller->stats());
    static_cast<void>(controller->scope_stats(ScopeId::kFirst, after_ms(i)));
    static_cast<void>(controller->is_overloaded(ScopeId::kFirst, after_ms(i)));
    static_cast<void>(controller->retry_after(ScopeId::kFirst, after_ms(i), rng));
    static_cast<void>(controller->next_expiry());
  }
  EXPECT_EQ(allocations_so_far(), before);
}

}  // namespace
}  // namespace weir::inline v0::inline control
