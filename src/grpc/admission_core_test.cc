// The waiting of calls, driven by threads of the test: no frame of gRPC is below them, so the
// thread sanitizer judges every access (tsan.supp).
#include "admission_core.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"
#include "weir/control/permit.h"
#include "weir/embed/clock.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

AdmissionConfig one_place(Duration wait) {
  AdmissionConfig config = testing::limit_of(1);
  config.high_wait_max = wait;
  return config;
}

/// A call that waits without a thread, as GuardedCall does: it and its grant set one flag, and the
/// later of the two goes on.
class Call {
 public:
  enum class End { kServed, kRefused, kClosed };

  Call(AdmissionCore& core, std::atomic<int>& inside) : core_(core), inside_(inside) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void start() {
    const TimePoint now = embed::now();
    core_.on_call(now);
    if (core_.closed()) return end(End::kClosed);
    Entered entered = core_.controller().enter({.priority = Priority::kHigh}, waiter_, now);
    if (entered.kind == Entered::Kind::kAdmitted) return serve(std::move(entered.permit));
    if (entered.kind == Entered::Kind::kRefused) return end(End::kRefused);
    if (!core_.park(waiter_, now)) return end(End::kClosed);
    if (parked_.test_and_set(std::memory_order_acq_rel)) after_wait();
  }
  /// What a grant has woken; on any thread.
  void wake_if_ready() {
    if (ready_.exchange(false) && parked_.test_and_set(std::memory_order_acq_rel)) after_wait();
  }
  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }
  [[nodiscard]] End how() const { return how_; }

 private:
  static void on_ready(Waiter& waiter) noexcept {
    static_cast<Call*>(waiter.context())->ready_ = true;
  }
  void after_wait() {
    auto permit = core_.controller().collect(waiter_, embed::now());
    core_.end_wait();
    if (!permit) return end(End::kRefused);
    if (core_.closed()) {
      std::move(*permit).finish(Outcome::kIgnored, embed::now());
      return end(End::kClosed);
    }
    serve(std::move(*permit));
  }
  void serve(Permit permit) {
    EXPECT_EQ(inside_.fetch_add(1), 0) << "the limit is 1";
    inside_.fetch_sub(1);
    std::move(permit).finish(Outcome::kOk, embed::now());
    end(End::kServed);
  }
  void end(End how) {
    how_ = how;  // not atomic: there must be one end
    ended_.store(true, std::memory_order_release);
  }

  AdmissionCore& core_;
  std::atomic<int>& inside_;
  Waiter waiter_{&Call::on_ready, this};
  std::atomic<bool> ready_{false};
  std::atomic_flag parked_;
  std::atomic<bool> ended_{false};
  End how_ = End::kRefused;
};

/// Threads that start calls and threads that go on with those that were granted.
class Threads {
 public:
  static constexpr int kStarters = 3;
  static constexpr int kCalls = 200;

  explicit Threads(AdmissionCore& core) {
    for (int i = 0; i < kStarters * kCalls; ++i) {
      calls_.push_back(std::make_unique<Call>(core, inside_));
    }
    for (int i = 0; i < kStarters; ++i) {
      threads_.emplace_back([this, i] { start_all(i); });
      threads_.emplace_back([this] { wake_all(); });
    }
  }
  /// How many calls ended so.
  int join(Call::End how) {
    threads_.clear();
    return static_cast<int>(std::count_if(calls_.begin(), calls_.end(),
                                          [&](const auto& one) { return one->how() == how; }));
  }

 private:
  /// At the same time as the others, call by call.
  void start_all(int starter) {
    for (int i = 0; i < kCalls; ++i) {
      together_.arrive_and_wait();
      calls_[static_cast<std::size_t>(starter * kCalls + i)]->start();
    }
  }
  void wake_all() {
    const TimePoint give_up = embed::now() + seconds(60);
    for (bool all = false; !all && embed::now() < give_up;) {
      all = true;
      for (const auto& one : calls_) {
        one->wake_if_ready();
        all = all && one->ended();
      }
      std::this_thread::yield();
    }
  }

  std::atomic<int> inside_{0};
  std::barrier<> together_{kStarters};
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::jthread> threads_;
};

void wait_until_many_wait(const AdmissionCore& core) {
  const TimePoint give_up = embed::now() + seconds(60);
  while (core.waiting() < Threads::kCalls && embed::now() < give_up) std::this_thread::yield();
}

TEST(AdmissionCore, EveryCallThatWaitsEndsOnce) {
  AdmissionController controller(one_place(seconds(20)), Rng(1));
  const auto core = std::make_shared<AdmissionCore>(controller, ServerOptions{});
  auto held = controller.try_admit({.priority = Priority::kHigh}, embed::now());
  ASSERT_TRUE(held.has_value());
  Threads threads(*core);
  wait_until_many_wait(*core);
  std::move(*held).finish(Outcome::kOk, embed::now());
  EXPECT_EQ(threads.join(Call::End::kServed), Threads::kStarters * Threads::kCalls);
  EXPECT_EQ(core->waiting(), 0);
  EXPECT_EQ(controller.stats().in_flight, 0U);
}

TEST(AdmissionCore, CallsThatWaitTooLongAreExpiredByAnAlarm) {
  AdmissionController controller(one_place(milliseconds(5)), Rng(1));
  const auto core = std::make_shared<AdmissionCore>(controller, ServerOptions{});
  const TimePoint now = embed::now();
  auto held = controller.try_admit({.priority = Priority::kHigh}, now);
  ASSERT_TRUE(held.has_value());
  Threads threads(*core);
  EXPECT_EQ(threads.join(Call::End::kRefused), Threads::kStarters * Threads::kCalls);
  EXPECT_EQ(core->waiting(), 0);
  std::move(*held).finish(Outcome::kOk, embed::now());
}

TEST(AdmissionCore, AfterCloseNoCallWaits) {
  AdmissionController controller(one_place(seconds(20)), Rng(1));
  const auto core = std::make_shared<AdmissionCore>(controller, ServerOptions{});
  auto held = controller.try_admit({.priority = Priority::kHigh}, embed::now());
  ASSERT_TRUE(held.has_value());
  Threads threads(*core);
  wait_until_many_wait(*core);
  std::jthread closer([&] { core->close(); });
  while (!core->closed()) std::this_thread::yield();
  std::move(*held).finish(Outcome::kOk, embed::now());
  closer.join();
  const int served = threads.join(Call::End::kServed);
  EXPECT_EQ(served + threads.join(Call::End::kClosed), Threads::kStarters * Threads::kCalls);
  EXPECT_EQ(core->waiting(), 0);
  EXPECT_EQ(controller.stats().in_flight, 0U);
}

// Between a call's look at closed() and its wait, close() came and went.
TEST(AdmissionCore, ACallThatMeetsCloseOnItsWayIsNotLeftBehind) {
  AdmissionController controller(one_place(seconds(20)), Rng(1));
  const auto core = std::make_shared<AdmissionCore>(controller, ServerOptions{});
  const TimePoint now = embed::now();
  auto held = controller.try_admit({.priority = Priority::kHigh}, now);
  ASSERT_TRUE(held.has_value());
  Waiter waiter([](Waiter&) noexcept { FAIL() << "it does not wait"; }, nullptr);
  const Entered entered = controller.enter({.priority = Priority::kHigh}, waiter, now);
  ASSERT_EQ(entered.kind, Entered::Kind::kWaiting);
  core->close();
  EXPECT_FALSE(core->park(waiter, now));
  EXPECT_EQ(core->waiting(), 0);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, now).waiting, 0U);
  std::move(*held).finish(Outcome::kOk, now);
}

}  // namespace
}  // namespace weir::grpc
