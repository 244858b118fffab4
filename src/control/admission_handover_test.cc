// Units that pass from thread to thread through the waiting room: none is lost, none is granted
// twice. Virtual time does not advance, so a lost wake-up is a hang and not a delay.
#include <array>
#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using Kind = Entered::Kind;

constexpr int kHandOvers = rounds(1'000'000);

/// One thread that waits with a callback. Every result of enter() is checked against the callback:
/// what enter() decides itself is not reported a second time.
class CallbackWaiter {
 public:
  explicit CallbackWaiter(AdmissionController& controller) : controller_(controller) {}

  /// Gets a permit, waiting if necessary. `waited` counts the permits granted after a wait.
  Permit take(Priority priority, std::atomic<int>& waited) {
    Entered entered = controller_.enter(request_of(priority), waiter_, kStart);
    EXPECT_NE(entered.kind, Kind::kRefused);
    if (entered.kind == Kind::kAdmitted) {
      told_twice_ += flag_.calls.load(std::memory_order_acquire) != 0 ? 1 : 0;
      return std::move(entered.permit);
    }
    flag_.calls.wait(0, std::memory_order_acquire);
    told_twice_ += flag_.calls.exchange(0, std::memory_order_acquire) != 1 ? 1 : 0;
    waited.fetch_add(1, std::memory_order_relaxed);
    return controller_.collect(waiter_, kStart).value();
  }
  [[nodiscard]] int told_twice() const { return told_twice_; }

 private:
  static void ready(Waiter& waiter) noexcept {
    auto* flag = static_cast<ReadyFlag*>(waiter.context());
    flag->calls.fetch_add(1, std::memory_order_release);
    flag->calls.notify_one();
  }
  AdmissionController& controller_;
  ReadyFlag flag_;
  Waiter waiter_{&ready, &flag_};
  int told_twice_ = 0;
};

void pass_one_unit_around(std::size_t threads) {
  AdmissionController controller(plain_config(1), Rng(1));
  std::atomic<int> waited{0};
  std::atomic<int> inside{0};
  std::atomic<int> crowded{0};
  run_together(threads, [&](std::size_t t) {
    CallbackWaiter waiter(controller);
    const Priority priority = t % 2 == 0 ? Priority::kNormal : Priority::kHigh;
    while (waited.load(std::memory_order_relaxed) < kHandOvers) {
      Permit permit = waiter.take(priority, waited);
      if (inside.fetch_add(1) != 0) crowded.fetch_add(1);
      inside.fetch_sub(1);
      std::move(permit).finish(Outcome::kOk, kStart);
    }
    EXPECT_EQ(waiter.told_twice(), 0);
  });
  EXPECT_EQ(crowded.load(), 0);
  EXPECT_GE(waited.load(), kHandOvers);
  EXPECT_TRUE(all_is_given_back(controller));
  EXPECT_EQ(controller.stats().rejected, 0U);
}

TEST(AdmissionHandOver, NoWakeUpIsLostInAMillionHandOversBetweenTwoThreads) {
  pass_one_unit_around(2);
}

TEST(AdmissionHandOver, NoWakeUpIsLostInAMillionHandOversAmongFiveThreads) {
  pass_one_unit_around(5);
}

TEST(AdmissionHandOver, NoWakeUpOfABlockedThreadIsLost) {
  constexpr int kEach = rounds(10'000);
  AdmissionController controller(plain_config(1), Rng(1));
  std::atomic<int> inside{0};
  std::atomic<int> crowded{0};
  run_together(4, [&](std::size_t t) {
    PatientParker parker;
    const AdmissionRequest request = request_of(t == 0 ? Priority::kHigh : Priority::kNormal);
    for (int i = 0; i < kEach; ++i) {
      Permit permit = controller.admit(request, parker, kStart).value();
      if (inside.fetch_add(1) != 0) crowded.fetch_add(1);
      if (i % 4 == 0) std::this_thread::yield();  // the others find no room and block
      inside.fetch_sub(1);
      if (i % 2 == 0) std::move(permit).finish(Outcome::kOk, kStart);
    }
  });
  EXPECT_EQ(crowded.load(), 0);
  EXPECT_EQ(controller.stats().admitted, 4U * kEach);
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_GT(stats.classes[index_of(Priority::kNormal)].waited.count, 100U);
  EXPECT_TRUE(all_is_given_back(controller));
}

// A waiter is cancelled, expired and granted at the same time, by three threads: exactly one of
// them succeeds, and the unit and all that the waiter held are given back in each case.
TEST(AdmissionHandOver, OfCancelExpiryAndGrantExactlyOneWins) {
  constexpr int kRounds = rounds(20'000);
  AdmissionController controller(plain_config(1), Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  request.bytes = 10;
  ReadyFlag flag;
  Waiter waiter(&ReadyFlag::set, &flag);
  Permit held;
  std::atomic<bool> cancelled{false};
  std::array<int, 3> won{};
  int wrong = 0;
  std::barrier start(3);
  const auto prepare = [&] {
    held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
    wrong += controller.enter(request, waiter, kStart).kind == Kind::kWaiting ? 0 : 1;
    cancelled.store(false);
    flag.calls.store(0);
  };
  const auto judge = [&]() noexcept {
    const bool was_cancelled = cancelled.load();
    wrong += flag.calls.load() == (was_cancelled ? 0 : 1) ? 0 : 1;
    if (was_cancelled) {
      ++won[0];
    } else {
      ++won[controller.collect(waiter, kStart).has_value() ? 1U : 2U];
    }
    wrong += all_is_given_back(controller) ? 0 : 1;
    prepare();
  };
  prepare();
  std::barrier done(3, judge);
  run_together(3, [&](std::size_t t) {
    for (int i = 0; i < kRounds; ++i) {
      start.arrive_and_wait();
      if (t == 0) cancelled.store(controller.cancel(waiter));
      if (t == 1) controller.expire(after_ms(50));
      if (t == 2) std::move(held).finish(Outcome::kOk, kStart);
      done.arrive_and_wait();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(won[0] + won[1] + won[2], kRounds);
  EXPECT_TRUE(controller.cancel(waiter));
}

// Other threads may try to cancel a waiter at any time, even while its owner collects it.
TEST(AdmissionHandOver, CancelMayMeetCollect) {
  constexpr int kRounds = rounds(20'000);
  AdmissionController controller(plain_config(1), Rng(1));
  Permit held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind, Kind::kWaiting);
  std::atomic<int> cancelled{0};
  std::atomic<int> collected{0};
  std::barrier start(3);
  std::barrier done(3, [&]() noexcept {
    // Either may succeed; then the unit and the waiter of the next round.
    held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
    EXPECT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind, Kind::kWaiting);
  });
  run_together(3, [&](std::size_t t) {
    for (int i = 0; i < kRounds; ++i) {
      start.arrive_and_wait();
      if (t == 0) held = Permit();
      if (t == 1) {
        while (waiter.state() == Waiter::State::kWaiting) std::this_thread::yield();
        if (waiter.state() == Waiter::State::kGranted) {
          EXPECT_TRUE(controller.collect(waiter, kStart).has_value());
          collected.fetch_add(1);
        }
      }
      if (t == 2) {
        for (int n = 0; n < 3; ++n) cancelled.fetch_add(controller.cancel(waiter) ? 1 : 0);
      }
      done.arrive_and_wait();
    }
  });
  EXPECT_EQ(cancelled.load() + collected.load(), kRounds);
  EXPECT_TRUE(controller.cancel(waiter));
  held = Permit();
  EXPECT_TRUE(all_is_given_back(controller));
}

// The owner may free a waiter as soon as it sees that another thread cancelled it.
TEST(AdmissionHandOver, AWaiterMayDieTheMomentItIsSeenCancelled) {
  constexpr int kRounds = rounds(20'000);
  AdmissionController controller(plain_config(1), Rng(1));
  Permit held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  request.bytes = 10;
  std::atomic<Waiter*> to_cancel{nullptr};
  std::jthread canceller([&] {
    for (int i = 0; i < kRounds; ++i) {
      to_cancel.wait(nullptr, std::memory_order_acquire);
      Waiter* waiter = to_cancel.exchange(nullptr, std::memory_order_acquire);
      EXPECT_TRUE(controller.cancel(*waiter));
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    auto waiter = std::make_unique<Waiter>();
    ASSERT_EQ(controller.enter(request, *waiter, kStart).kind, Kind::kWaiting);
    to_cancel.store(waiter.get(), std::memory_order_release);
    to_cancel.notify_one();
    while (waiter->state() != Waiter::State::kCancelled) std::this_thread::yield();
    waiter.reset();
  }
  canceller.join();
  held = Permit();
  EXPECT_TRUE(all_is_given_back(controller));
}

}  // namespace
}  // namespace weir::inline v0::inline control
