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

/// A piece of work that its owner embeds and hands to a Loop; never allocated by the loop.
///
/// Promises: posting it again before it ran does nothing (it runs once, after the last post).
/// Lifetime: must not die while queued.
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

/// One event loop, run by one thread: readiness, timers, work from other threads.
///
/// A turn is: timers that are due, sockets that are ready, tasks posted by other threads, then
/// deferred tasks; then the loop sleeps until something happens.
///
/// Promises: now() is read at most twice per turn. A task posted or deferred while the loop runs
/// is run; what is still queued when the loop dies is forgotten.
/// Thread-safety: stop(), post() and in_loop_thread() from any thread; all else from the loop's
/// thread, or before run().
/// Cost: post() is a push and at most one wake-up (none on the loop's own thread); defer(), arm(),
/// cancel() are a few stores.
/// Lifetime: outlives its sockets, listeners and timers, which must be closed before it dies.
class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  /// Runs until stop(). May be called again afterwards.
  void run();
  /// Runs what is ready now and returns, for tests that step a loop by hand. With `wait`, sleeps
  /// until something is ready first.
  void run_once(bool wait = false);
  void stop() noexcept;

  /// The monotonic time of this turn.
  [[nodiscard]] TimePoint now() noexcept;
  /// Reads the clock again; for code that runs long inside one turn.
  TimePoint refresh_now() noexcept;

  /// Runs `task` on this loop's thread, from any thread; from its own, this is defer().
  void post(Task& task) noexcept;
  /// The same for a closure. It allocates: for starting and stopping, not for requests.
  void post(std::function<void()> work);
  /// Runs `task` later in this turn, after the callback that is running now. Own thread only.
  void defer(Task& task) noexcept;

  void arm(Timer& timer, TimePoint deadline) noexcept;
  void arm(Timer& timer, Duration delay) noexcept { arm(timer, now() + delay); }
  void cancel(Timer& timer) noexcept;

  [[nodiscard]] bool in_loop_thread() const noexcept;
  /// How late the last timer turn was against the earliest deadline it served: a loop that stalls
  /// shows here. Own thread only.
  [[nodiscard]] Duration timer_lateness() const noexcept;
  /// Turns so far; any thread.
  [[nodiscard]] std::uint64_t turns() const noexcept;

  /// The calls its sockets use from now on; must outlive the loop. For tests.
  void use(const Syscalls& calls) noexcept;

  /// The libuv loop inside, for io itself.
  struct Impl;
  [[nodiscard]] Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::io
