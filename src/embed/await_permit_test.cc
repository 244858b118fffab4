#include "weir/embed/await_permit.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::embed {
namespace {

/// A coroutine that runs to its end; nothing awaits it.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// The coroutines that are ready to be resumed.
class Queue {
 public:
  void push(std::coroutine_handle<> handle) {
    const std::scoped_lock lock(mutex_);
    handles_.push_back(handle);
    wake_.notify_one();
  }
  std::coroutine_handle<> pop() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !handles_.empty(); });
    const std::coroutine_handle<> first = handles_.front();
    handles_.pop_front();
    return first;
  }
  bool empty() {
    const std::scoped_lock lock(mutex_);
    return handles_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::coroutine_handle<>> handles_;
};

AdmissionConfig one_at_a_time() {
  AdmissionConfig config;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = 1;
  config.limit.min_limit = 1;
  config.normal_wait_max = std::chrono::seconds(60);
  return config;
}

Task ask(AdmissionController& admission, Queue& queue, std::vector<Reason>& answers,
         Permit* keep = nullptr) {
  Result<Permit, Reason> permit =
      co_await AwaitPermit(admission, {}, [&queue](std::coroutine_handle<> h) { queue.push(h); });
  answers.push_back(permit ? Reason::kAdmitted : permit.error());
  if (permit && keep != nullptr) *keep = std::move(*permit);
}

TEST(AwaitPermit, GoesOnAtOnceWhenThereIsAPlace) {
  AdmissionController admission(one_at_a_time(), Rng(1));
  Queue queue;
  std::vector<Reason> answers;
  ask(admission, queue, answers);
  EXPECT_EQ(answers, std::vector{Reason::kAdmitted});
  EXPECT_TRUE(queue.empty());
}

TEST(AwaitPermit, WaitsUntilAPlaceIsGivenBack) {
  AdmissionController admission(one_at_a_time(), Rng(1));
  Queue queue;
  std::vector<Reason> answers;
  Permit held;
  ask(admission, queue, answers, &held);
  ask(admission, queue, answers);
  EXPECT_EQ(answers.size(), 1U);
  std::move(held).finish(Outcome::kOk, now());
  EXPECT_EQ(answers.size(), 1U) << "it goes on where it is scheduled, not under the lock";
  queue.pop().resume();
  EXPECT_EQ(answers, (std::vector{Reason::kAdmitted, Reason::kAdmitted}));
}

TEST(AwaitPermit, IsRefusedAtOnceOrWhenItsTimeIsOver) {
  AdmissionConfig config = one_at_a_time();
  config.waiting_max = 1;
  AdmissionController admission(config, Rng(1));
  Queue queue;
  std::vector<Reason> answers;
  Permit held;
  ask(admission, queue, answers, &held);
  ask(admission, queue, answers);  // waits
  ask(admission, queue, answers);  // the room is full
  EXPECT_EQ(answers, (std::vector{Reason::kAdmitted, Reason::kOverload}));
  admission.expire(admission.next_expiry());
  queue.pop().resume();
  EXPECT_EQ(answers.back(), Reason::kOverload);
  EXPECT_EQ(answers.size(), 3U);
}

TEST(AwaitPermit, ManyThreadsAskAndOthersResume) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  AdmissionConfig config = one_at_a_time();
  config.waiting_max = kThreads * kEach;
  config.actor_table_size = 65536;
  AdmissionController admission(config, Rng(1));
  Queue queue;
  std::atomic<int> ended{0};
  const auto one = [](AdmissionController& controller, Queue& next,
                      std::atomic<int>& count) -> Task {
    Result<Permit, Reason> permit =
        co_await AwaitPermit(controller, {}, [&next](std::coroutine_handle<> h) { next.push(h); });
    if (permit) std::move(*permit).finish(Outcome::kOk, now());
    ++count;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) one(admission, queue, ended);
    });
  }
  std::thread resumer([&] {
    while (ended.load() < kThreads * kEach) {
      if (!queue.empty()) {
        queue.pop().resume();
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  resumer.join();
  EXPECT_EQ(ended.load(), kThreads * kEach);
  EXPECT_EQ(admission.stats().in_flight, 0U);
}

}  // namespace
}  // namespace weir::inline v0::embed
