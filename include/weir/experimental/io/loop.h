#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "weir/base/time.h"
#include "weir/experimental/io/callback.h"
#include "weir/experimental/io/syscalls.h"
#include "weir/experimental/io/timer.h"

namespace weir::inline v0::io {

/// Work for a Loop, embedded in its owner; the loop does not allocate it.
///
/// Promises: posting it again before it has run does nothing (it runs once, after the last post).
/// Lifetime: must not be destroyed while queued.
class Task {
 public:
  Task() = default;
  explicit Task(Callback<> run) noexcept : run_(run) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  void on_run(Callback<> run) noexcept { run_ = run; }
  [[nodiscard]] bool queued() const noexcept { return queued_.load(std::memory_order_acquire); }

 private:
  friend class Loop;
  Callback<> run_;
  Task* next_ = nullptr;
  std::atomic<bool> queued_{false};
};

/// One event loop, run by one thread: socket readiness, timers, tasks from other threads.
///
/// A turn runs timers that are due, sockets that are ready, tasks posted by other threads, and then
/// deferred tasks. Then the loop blocks until there is an event.
///
/// Promises: the clock is read at most twice per turn. A task posted or deferred while the loop
/// runs is run; tasks that are queued when the loop is destroyed are dropped.
/// Thread-safety: stop(), post() and in_loop_thread() from any thread; all other members from the
/// loop's thread, or before run().
/// Cost: post() is a push and at most one wake-up (none on the loop's own thread); defer(), arm(),
/// cancel() are a few stores.
/// Lifetime: must outlive its sockets, listeners and timers, which must be closed first.
class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  /// Runs until stop(). May be called again afterwards.
  void run();
  /// Runs what is ready now and returns, for tests that run a loop step by step. With `wait`, it
  /// first blocks until something is ready.
  void run_once(bool wait = false);
  void stop() noexcept;

  /// The monotonic time of this turn.
  [[nodiscard]] TimePoint now() noexcept;
  /// Reads the clock again; for code that runs for a long time within one turn.
  TimePoint refresh_now() noexcept;

  /// Runs `task` on this loop's thread; callable from any thread. On the loop's own thread it is
  /// defer().
  void post(Task& task) noexcept;
  /// The same for a closure. It allocates: use it to start and stop, not for requests.
  void post(std::function<void()> work);
  /// Runs `work` on the loop's thread, which runs, and returns when it is done.
  void call(const std::function<void()>& work);
  /// Runs `task` later in this turn, after the callback that is running now. Own thread only.
  void defer(Task& task) noexcept;

  void arm(Timer& timer, TimePoint deadline) noexcept;
  void arm(Timer& timer, Duration delay) noexcept { arm(timer, now() + delay); }
  void cancel(Timer& timer) noexcept;

  [[nodiscard]] bool in_loop_thread() const noexcept;
  /// How late the last timer turn was, compared with the earliest deadline in it; shows a loop that
  /// stalls. Own thread only.
  [[nodiscard]] Duration timer_lateness() const noexcept;
  /// The number of turns so far; any thread.
  [[nodiscard]] std::uint64_t turns() const noexcept;

  /// Sets the system calls that its sockets use from now on; must outlive the loop. For tests.
  void use(const Syscalls& calls) noexcept;

  /// The libuv loop, for io only.
  struct Impl;
  [[nodiscard]] Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::io
