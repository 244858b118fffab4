// The ways to ask for a permit, as docs/guide/library.md shows them: not waiting, blocking a
// thread, by callback, in a coroutine. Prints what each was answered.
//
//   ways_to_wait
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "weir/control/admission_controller.h"
#include "weir/embed/await_permit.h"
#include "weir/embed/clock.h"
#include "weir/embed/thread_parker.h"

namespace {

void say(const char* way, weir::Reason reason) {
  std::printf("%s: %s\n", way, weir::name_of(reason).data());
}

// [not waiting]
void serve_now_or_never(weir::AdmissionController& admission) {
  auto permit = admission.try_admit(weir::AdmissionRequest{}, weir::embed::now());
  if (!permit) return say("not waiting", permit.error());
  say("not waiting", weir::Reason::kAdmitted);
  std::move(*permit).finish(weir::Outcome::kOk, weir::embed::now());
}
// [end]

// [blocking]
void serve_in_a_thread(weir::AdmissionController& admission) {
  weir::embed::ThreadParker parker;  // sleeps for at most 50 ms, the patience of normal
  auto permit = admission.admit(weir::AdmissionRequest{}, parker, weir::embed::now());
  if (!permit) return say("blocking", permit.error());
  say("blocking", weir::Reason::kAdmitted);
  std::move(*permit).finish(weir::Outcome::kOk, weir::embed::now());
}
// [end]

/// An event loop in small: others enqueue, one thread runs.
class Loop {
 public:
  struct Job {
    void (*run)(void* what);
    void* what;
  };
  void post(Job job) noexcept {
    const std::scoped_lock lock(mutex_);
    if (count_ < jobs_.size()) jobs_[count_++] = job;
    wake_.notify_one();
  }
  /// Runs what was posted, or returns at `until`.
  void run_until(weir::TimePoint until) {
    std::unique_lock lock(mutex_);
    while (count_ == 0 && weir::embed::now() < until) {
      wake_.wait_for(lock, until - weir::embed::now());
    }
    while (count_ > 0) {
      const Job job = jobs_[--count_];
      lock.unlock();
      job.run(job.what);
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::array<Job, 8> jobs_{};
  std::size_t count_ = 0;
};

// [callback]
class Request {
 public:
  Request(weir::AdmissionController& admission, Loop& loop) : admission_(admission), loop_(loop) {}

  void start() {
    weir::Entered entered = admission_.enter(weir::AdmissionRequest{}, waiter_, weir::embed::now());
    if (entered.kind == weir::Entered::Kind::kAdmitted) return serve(std::move(entered.permit));
    if (entered.kind == weir::Entered::Kind::kRefused) return end(entered.reason);
    // Otherwise it waits: go() comes later.
  }
  bool ended = false;

 private:
  /// On the thread that freed the place, under a lock: may only enqueue and wake.
  static void on_ready(weir::Waiter& waiter) noexcept {
    Request& self = *static_cast<Request*>(waiter.context());
    self.loop_.post({[](void* what) { static_cast<Request*>(what)->go(); }, &self});
  }
  void go() {
    auto permit = admission_.collect(waiter_, weir::embed::now());
    if (!permit) return end(permit.error());
    serve(std::move(*permit));
  }
  void serve(weir::Permit permit) {
    std::move(permit).finish(weir::Outcome::kOk, weir::embed::now());
    end(weir::Reason::kAdmitted);
  }
  void end(weir::Reason reason) {
    say("callback", reason);
    ended = true;
  }

  weir::AdmissionController& admission_;
  Loop& loop_;
  weir::Waiter waiter_{&Request::on_ready, this};
};
// [end]

/// The least that a coroutine needs.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// [coroutine]
Task serve_in_a_coroutine(weir::AdmissionController& admission, Loop& loop, bool& ended) {
  const auto resume_on_loop = [&loop](std::coroutine_handle<> waiting) noexcept {
    loop.post({[](void* what) { std::coroutine_handle<>::from_address(what).resume(); },
               waiting.address()});
  };
  weir::Result<weir::Permit, weir::Reason> permit =
      co_await weir::embed::AwaitPermit(admission, weir::AdmissionRequest{}, resume_on_loop);
  say("coroutine", permit ? weir::Reason::kAdmitted : permit.error());
  if (permit) std::move(*permit).finish(weir::Outcome::kOk, weir::embed::now());
  ended = true;
}
// [end]

// [expire]
void run(Loop& loop, weir::AdmissionController& admission, const bool& ended) {
  while (!ended) {
    const weir::TimePoint now = weir::embed::now();
    admission.expire(now);  // refuses whose time is over, closes measurement windows
    loop.run_until(std::min(admission.next_expiry(), now + std::chrono::milliseconds(100)));
  }
}
// [end]

}  // namespace

int main() {
  weir::AdmissionConfig config;
  config.limit.policy = weir::LimitKind::kFixed;
  config.limit.initial_limit = 1;
  config.limit.min_limit = 1;
  auto created = weir::AdmissionController::create(config, weir::Rng(weir::embed::random_seed()));
  if (!created) return 2;
  weir::AdmissionController& admission = **created;
  Loop loop;

  // Somebody else holds the only place: who does not wait is refused …
  auto held = admission.try_admit(weir::AdmissionRequest{}, weir::embed::now());
  if (!held) return 1;
  serve_now_or_never(admission);

  // … and who waits is served when the place comes free, or refused when its patience ends.
  Request request(admission, loop);
  request.start();
  std::move(*held).finish(weir::Outcome::kOk, weir::embed::now());
  run(loop, admission, request.ended);

  bool ended = false;
  serve_in_a_coroutine(admission, loop, ended);
  run(loop, admission, ended);
  std::thread(serve_in_a_thread, std::ref(admission)).join();
  return 0;
}
