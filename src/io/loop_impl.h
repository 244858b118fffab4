#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <uv.h>

#include "weir/experimental/io/loop.h"

#include "timer_wheel.h"

namespace weir::inline v0::io {

/// The implementation of Loop: libuv's loop and the five handles that every turn needs.
struct Loop::Impl {
  Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  uv_loop_t uv{};
  uv_prepare_t prepare{};  // runs last, before the loop blocks
  uv_check_t check{};      // runs first, after the sockets
  uv_idle_t idle{};        // active while deferred tasks are left: the loop must not block
  uv_async_t wake{};
  uv_timer_t alarm{};  // the wheel's next wake-up

  TimerWheel wheel;
  std::optional<TimePoint> alarm_at;
  TimePoint now{};
  bool now_known = false;
  bool single_turn = false;  // run_once(): a turn in which timers fired does not block
  bool fired = false;
  Duration lateness{};
  const Syscalls* calls = &system_calls();

  Task* deferred_first = nullptr;
  Task* deferred_last = nullptr;
  std::atomic<Task*> posted{nullptr};  // newest first
  std::mutex closures_mutex;
  std::vector<std::function<void()>> closures;

  std::atomic<bool> stopping{false};
  std::atomic<std::thread::id> thread{};
  std::atomic<std::uint64_t> turns{0};

  TimePoint current() noexcept;
  void run_posted();
  bool run_deferred();  // returns whether there was any
  void defer(Task& task) noexcept;
  void start(Task& task);
  void before_sleep();
  void set_alarm() noexcept;
  void fire_timers();
};

}  // namespace weir::inline v0::io
