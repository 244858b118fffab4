#include "weir/experimental/io/loop.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/io/clock.h"

namespace weir::inline v0::io {
namespace {

using std::chrono::milliseconds;

struct Counter {
  void run() { ++count; }
  void fired(TimePoint now) {
    ++count;
    at = now;
  }
  int count = 0;
  TimePoint at{};
};

TEST(Loop, NowIsReadOncePerTurnAndMovesOn) {
  Loop loop;
  const TimePoint first = loop.now();
  while (monotonic_now() == first) {
  }
  EXPECT_EQ(loop.now(), first);
  EXPECT_GT(loop.refresh_now(), first);
  const TimePoint second = loop.now();
  loop.run_once();
  EXPECT_GT(loop.now(), second);
}

TEST(Loop, TimerFiresNotBeforeItsDeadline) {
  Loop loop;
  Counter seen;
  Timer timer(Timer::Fired::to<&Counter::fired>(seen));
  const TimePoint deadline = loop.now() + milliseconds(3);
  loop.arm(timer, deadline);
  while (seen.count == 0) loop.run_once(true);
  EXPECT_GE(seen.at, deadline);
  EXPECT_EQ(seen.count, 1);
}

TEST(Loop, EarlierTimerArmedLaterMovesTheAlarm) {
  Loop loop;
  Counter late;
  Counter early;
  Timer far(Timer::Fired::to<&Counter::fired>(late));
  Timer near(Timer::Fired::to<&Counter::fired>(early));
  loop.arm(far, std::chrono::hours(1));
  loop.run_once();
  loop.arm(near, milliseconds(1));
  while (early.count == 0) loop.run_once(true);
  EXPECT_EQ(late.count, 0);
  loop.cancel(far);
}

TEST(Loop, DeferredTasksRunInOrderLaterInTheTurn) {
  Loop loop;
  struct Chain {
    void run() {
      order->push_back(id);
      if (next != nullptr) loop->defer(*next);
    }
    Loop* loop = nullptr;
    std::vector<int>* order = nullptr;
    int id = 0;
    Task* next = nullptr;
  };
  std::vector<int> order;
  Chain a{&loop, &order, 1, nullptr};
  Chain b{&loop, &order, 2, nullptr};
  Chain c{&loop, &order, 3, nullptr};
  Task first(Callback<>::to<&Chain::run>(a));
  Task second(Callback<>::to<&Chain::run>(b));
  Task third(Callback<>::to<&Chain::run>(c));
  a.next = &third;
  loop.defer(first);
  loop.defer(second);
  loop.defer(first);  // already queued: runs once
  EXPECT_TRUE(first.queued());
  EXPECT_TRUE(order.empty());
  loop.run_once();
  loop.run_once();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(first.queued());
}

TEST(Loop, TaskThatDefersItselfDoesNotStopTimers) {
  Loop loop;
  struct Spinner {
    void run() {
      ++count;
      if (on) loop->defer(*task);
    }
    Loop* loop;
    Task* task;
    int count = 0;
    bool on = true;
  };
  Task task;
  Spinner spinner{&loop, &task};
  task.on_run(Callback<>::to<&Spinner::run>(spinner));
  Counter seen;
  Timer timer(Timer::Fired::to<&Counter::fired>(seen));
  loop.arm(timer, milliseconds(2));
  loop.defer(task);
  while (seen.count == 0) loop.run_once(true);
  EXPECT_GT(spinner.count, 1);
  spinner.on = false;
  loop.run_once();
}

TEST(Loop, EveryPostFromManyThreadsRuns) {
  // Each thread posts its own task and waits until it has run before posting again.
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  Loop loop;
  struct Poster {
    void run() {
      ++runs;
      done.store(true, std::memory_order_release);
      done.notify_one();
    }
    int runs = 0;
    std::atomic<bool> done{false};
  };
  std::vector<Poster> posters(kThreads);
  std::atomic<int> left{kThreads};
  std::vector<std::thread> threads;
  for (Poster& poster : posters) {
    threads.emplace_back([&loop, &poster, &left] {
      Task task(Callback<>::to<&Poster::run>(poster));
      for (int i = 0; i < kPosts; ++i) {
        poster.done.store(false, std::memory_order_relaxed);
        loop.post(task);
        poster.done.wait(false, std::memory_order_acquire);
      }
      if (left.fetch_sub(1) == 1) loop.stop();
    });
  }
  loop.run();
  for (std::thread& thread : threads) thread.join();
  for (const Poster& poster : posters) EXPECT_EQ(poster.runs, kPosts);
}

TEST(Loop, APostOnItsOwnThreadNeedsNoWakeUp) {
  Loop loop;
  loop.run_once();  // from now on this is the loop's thread
  Counter seen;
  Task task(Callback<>::to<&Counter::run>(seen));
  loop.post(task);
  EXPECT_TRUE(task.queued());
  EXPECT_EQ(seen.count, 0) << "never inside the call";
  const std::uint64_t turns = loop.turns();
  loop.run_once(true);
  EXPECT_EQ(seen.count, 1);
  EXPECT_EQ(loop.turns(), turns + 1);
}

TEST(Loop, NoPostIsLostWhenTheLoopPostsTheSameTaskItself) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  Loop loop;
  struct Shared {
    void run() {
      runs.fetch_add(1);
      runs.notify_all();
    }
    void spin() {
      loop->post(*task);
      if (left.load() > 0) loop->post(*spinner);
    }
    Loop* loop;
    Task* task;
    Task* spinner;
    std::atomic<int> runs{0};
    std::atomic<int> left{kThreads};
  };
  Task task;
  Task spinner;
  Shared shared{&loop, &task, &spinner};
  task.on_run(Callback<>::to<&Shared::run>(shared));
  spinner.on_run(Callback<>::to<&Shared::spin>(shared));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kPosts; ++k) {
        const int before = shared.runs.load();
        loop.post(task);
        shared.runs.wait(before);
      }
      if (shared.left.fetch_sub(1) == 1) loop.stop();
    });
  }
  loop.defer(spinner);
  loop.run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.left.load(), 0);
}

TEST(Loop, ClosureRunsOnTheLoopThread) {
  Loop loop;
  bool inside = false;
  std::thread runner([&loop] { loop.run(); });
  loop.post([&] {
    inside = loop.in_loop_thread();
    loop.stop();
  });
  runner.join();
  EXPECT_TRUE(inside);
  EXPECT_FALSE(loop.in_loop_thread());
}

TEST(Loop, StopBeforeRunReturnsAtOnceAndRunWorksAgain) {
  Loop loop;
  loop.stop();
  loop.run();
  Counter seen;
  Task task(Callback<>::to<&Counter::run>(seen));
  loop.post(task);
  loop.post([&loop] { loop.stop(); });
  loop.run();
  EXPECT_EQ(seen.count, 1);
  EXPECT_GT(loop.turns(), 0U);
}

TEST(Loop, LatenessShowsAStalledTurn) {
  Loop loop;
  Counter seen;
  Timer timer(Timer::Fired::to<&Counter::fired>(seen));
  loop.arm(timer, milliseconds(1));
  loop.run_once();  // the alarm is set
  const TimePoint stalled_until = monotonic_now() + milliseconds(10);
  while (monotonic_now() < stalled_until) {
  }
  while (seen.count == 0) loop.run_once(true);
  EXPECT_GE(loop.timer_lateness(), milliseconds(5));
}

}  // namespace
}  // namespace weir::inline v0::io
