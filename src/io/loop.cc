#include "weir/experimental/io/loop.h"

#include <algorithm>
#include <latch>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"

#include "loop_impl.h"

namespace weir::inline v0::io {
namespace {

Loop::Impl& impl_of(void* data) {
  return *static_cast<Loop::Impl*>(data);
}

void must(int uv_status) {
  WEIR_ASSERT(uv_status == 0);
}

template <class Handle>
uv_handle_t* as_handle(Handle& handle) {
  return reinterpret_cast<uv_handle_t*>(&handle);
}

}  // namespace

Loop::Impl::Impl() : wheel(monotonic_now()) {
  must(uv_loop_init(&uv));
  uv.data = this;
  must(uv_prepare_init(&uv, &prepare));
  must(uv_check_init(&uv, &check));
  must(uv_idle_init(&uv, &idle));
  must(uv_timer_init(&uv, &alarm));
  must(uv_async_init(&uv, &wake,
                     [](uv_async_t* handle) { impl_of(handle->loop->data).run_posted(); }));
  must(uv_prepare_start(&prepare,
                        [](uv_prepare_t* handle) { impl_of(handle->loop->data).before_sleep(); }));
  must(uv_check_start(&check, [](uv_check_t* handle) {
    Impl& self = impl_of(handle->loop->data);
    self.run_deferred();
    self.now_known = false;  // the next turn reads the clock again for its timers
  }));
}

Loop::Impl::~Impl() {
  for (uv_handle_t* handle :
       {as_handle(prepare), as_handle(check), as_handle(idle), as_handle(wake), as_handle(alarm)}) {
    uv_close(handle, nullptr);
  }
  uv_run(&uv, UV_RUN_DEFAULT);
  must(uv_loop_close(&uv));  // fails if a socket or listener outlived its loop
}

TimePoint Loop::Impl::current() noexcept {
  if (!now_known) {
    now = monotonic_now();
    now_known = true;
  }
  return now;
}

void Loop::Impl::run_posted() {
  Task* newest = posted.exchange(nullptr, std::memory_order_acquire);
  Task* oldest = nullptr;
  while (newest != nullptr) newest = std::exchange(newest->next_, std::exchange(oldest, newest));
  while (oldest != nullptr) {
    Task& task = *std::exchange(oldest, oldest->next_);
    start(task);
  }
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(closures_mutex);
    work.swap(closures);
  }
  for (const std::function<void()>& closure : work) closure();
  if (stopping.load(std::memory_order_acquire)) uv_stop(&uv);
}

void Loop::Impl::defer(Task& task) noexcept {
  task.next_ = nullptr;
  if (deferred_last != nullptr) {
    deferred_last->next_ = &task;
  } else {
    deferred_first = &task;
  }
  deferred_last = &task;
}

bool Loop::Impl::run_deferred() {
  // One batch: tasks deferred by these tasks run in the next phase, so sockets are never blocked.
  Task* first = std::exchange(deferred_first, nullptr);
  deferred_last = nullptr;
  const bool any = first != nullptr;
  while (first != nullptr) {
    Task& task = *std::exchange(first, first->next_);
    start(task);
  }
  return any;
}

void Loop::Impl::start(Task& task) {
  task.next_ = nullptr;
  const Callback<> run = task.run_;  // the task may be posted or destroyed once unqueued
  // Synchronises with every post() that found the task already queued.
  task.queued_.exchange(false, std::memory_order_acq_rel);
  run();
}

void Loop::Impl::before_sleep() {
  turns.fetch_add(1, std::memory_order_relaxed);
  const bool ran = run_deferred();
  if (deferred_first != nullptr || (single_turn && (fired || ran))) {
    must(uv_idle_start(&idle, [](uv_idle_t*) {}));
  } else {
    uv_idle_stop(&idle);
  }
  set_alarm();
  fired = false;
  now_known = false;
}

void Loop::Impl::set_alarm() noexcept {
  const std::optional<TimePoint> next = wheel.next_wake();
  if (!next) return;  // an alarm that is still set costs only one wake-up
  if (alarm_at && *alarm_at <= *next) return;
  alarm_at = next;
  const Duration delay = std::max(*next - monotonic_now(), Duration::zero());
  uv_update_time(&uv);
  constexpr Duration kMilli = std::chrono::milliseconds(1);
  const auto millis = static_cast<std::uint64_t>((delay + kMilli - Duration(1)) / kMilli);
  must(uv_timer_start(
      &alarm, [](uv_timer_t* handle) { impl_of(handle->loop->data).fire_timers(); }, millis, 0));
}

void Loop::Impl::fire_timers() {
  const TimePoint at = std::exchange(alarm_at, std::nullopt).value_or(TimePoint{});
  const TimePoint seen = current();
  if (wheel.advance(seen) == 0) return;
  fired = true;
  lateness = std::max(seen - at, Duration::zero());
}

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

void Loop::run() {
  impl_->thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
  if (!impl_->stopping.load(std::memory_order_acquire)) uv_run(&impl_->uv, UV_RUN_DEFAULT);
  impl_->stopping.store(false, std::memory_order_release);
}

void Loop::run_once(bool wait) {
  impl_->thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
  impl_->now_known = false;
  impl_->single_turn = true;
  uv_run(&impl_->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
  impl_->single_turn = false;
}

void Loop::stop() noexcept {
  impl_->stopping.store(true, std::memory_order_release);
  uv_async_send(&impl_->wake);
}

TimePoint Loop::now() noexcept {
  return impl_->current();
}

TimePoint Loop::refresh_now() noexcept {
  impl_->now_known = false;
  return impl_->current();
}

void Loop::post(Task& task) noexcept {
  if (task.queued_.exchange(true, std::memory_order_acq_rel)) return;
  if (in_loop_thread()) return impl_->defer(task);  // the loop is awake
  Task* head = impl_->posted.load(std::memory_order_relaxed);
  do {
    task.next_ = head;
  } while (!impl_->posted.compare_exchange_weak(head, &task, std::memory_order_release,
                                                std::memory_order_relaxed));
  if (head == nullptr) uv_async_send(&impl_->wake);  // otherwise a wake-up was already sent
}

void Loop::post(std::function<void()> work) {
  {
    const std::lock_guard lock(impl_->closures_mutex);
    impl_->closures.push_back(std::move(work));
  }
  uv_async_send(&impl_->wake);
}

void Loop::call(const std::function<void()>& work) {
  if (in_loop_thread()) return work();
  std::latch done(1);
  post([&] {
    work();
    done.count_down();
  });
  done.wait();
}

void Loop::defer(Task& task) noexcept {
  if (!task.queued_.exchange(true, std::memory_order_acq_rel)) impl_->defer(task);
}

void Loop::arm(Timer& timer, TimePoint deadline) noexcept {
  impl_->wheel.arm(timer, deadline);
}

void Loop::cancel(Timer& timer) noexcept {
  impl_->wheel.cancel(timer);
}

bool Loop::in_loop_thread() const noexcept {
  return impl_->thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

Duration Loop::timer_lateness() const noexcept {
  return impl_->lateness;
}

std::uint64_t Loop::turns() const noexcept {
  return impl_->turns.load(std::memory_order_relaxed);
}

void Loop::use(const Syscalls& calls) noexcept {
  impl_->calls = &calls;
}

}  // namespace weir::inline v0::io
