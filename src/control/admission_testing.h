#pragma once

// Shared by the tests of admission: a small controller, requests, threads that start together, a
// parker in virtual time.

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/control/admission_controller.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WEIR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define WEIR_SANITIZED 1
#endif
#endif
#ifndef WEIR_SANITIZED
#define WEIR_SANITIZED 0
#endif

namespace weir::inline v0::inline control {

/// Sanitizers make every step much slower, so the same test runs fewer rounds. They check every
/// access, so fewer rounds are enough to find a bug.
[[nodiscard]] constexpr int rounds(int in_release) noexcept {
  return WEIR_SANITIZED != 0 ? in_release / 20 : in_release;
}

inline constexpr TimePoint kStart = time_from_ns(1'000'000'000);

[[nodiscard]] constexpr TimePoint after_ms(std::int64_t ms) noexcept {
  return kStart + std::chrono::milliseconds(ms);
}

/// A fixed limit of 8, 16 in the process, 4 per peer.
[[nodiscard]] inline AdmissionConfig small_config() {
  AdmissionConfig config;
  config.max_concurrent = 16;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = 8;
  config.limit.min_limit = 2;
  config.limit.max_limit = 16;
  config.per_peer_limit = 4;
  return config;
}

[[nodiscard]] inline LimitConfig vegas(std::uint32_t initial, std::uint32_t min_limit) {
  return {.policy = LimitKind::kVegas, .initial_limit = initial, .min_limit = min_limit};
}

/// A fixed limit of `limit`, the same for the process, and every share is the whole limit.
[[nodiscard]] inline AdmissionConfig plain_config(std::uint32_t limit) {
  AdmissionConfig config;
  config.max_concurrent = limit;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = config.limit.max_limit = limit;
  config.limit.min_limit = 1;
  config.classes.share_normal_permille = 1000;
  config.classes.share_low_permille = 1000;
  config.classes.share_hedge_permille = 1000;
  return config;
}

[[nodiscard]] inline AdmissionRequest request_of(Priority priority,
                                                 ScopeId scope = ScopeId::kFirst) {
  AdmissionRequest request;
  request.priority = priority;
  request.scope = scope;
  return request;
}

/// Admits until refused, at most `most` times; returns the permits.
[[nodiscard]] inline std::vector<Permit> admit_all(AdmissionController& controller,
                                                   const AdmissionRequest& request,
                                                   std::size_t most, TimePoint now = kStart) {
  std::vector<Permit> permits;
  while (permits.size() < most) {
    auto permit = controller.try_admit(request, now);
    if (!permit) break;
    permits.push_back(std::move(permit).value());
  }
  return permits;
}

/// True if nothing is held anywhere: every test must end in this state.
[[nodiscard]] inline bool all_is_given_back(const AdmissionController& controller) {
  const AdmissionStats stats = controller.stats();
  bool idle = stats.in_flight == 0 && stats.streaming == 0 && stats.bytes == 0;
  for (std::size_t i = 0; i < controller.scope_count(); ++i) {
    const ScopeStats scope = controller.scope_stats(static_cast<ScopeId>(i), kStart);
    idle = idle && scope.in_flight == 0 && scope.waiting == 0;
    for (const ClassStats& c : scope.classes) idle = idle && c.in_flight == 0;
  }
  // The lists contain every holder.
  return idle && controller.top_actors(1).empty() && controller.top_peers(1).empty() &&
         controller.next_expiry() == TimePoint::max();
}

/// Runs `body(thread index)` on `count` threads that start together; returns when all have ended.
template <class Body>
void run_together(std::size_t count, Body body) {
  std::barrier start(static_cast<std::ptrdiff_t>(count));
  std::vector<std::jthread> threads;
  threads.reserve(count);
  for (std::size_t t = 0; t < count; ++t) {
    threads.emplace_back([&start, &body, t] {
      start.arrive_and_wait();
      body(t);
    });
  }
}

/// The owner of a waiter; it only records that it was called.
struct ReadyFlag {
  std::atomic<int> calls{0};
  static void set(Waiter& waiter) noexcept {
    static_cast<ReadyFlag*>(waiter.context())->calls.fetch_add(1, std::memory_order_release);
  }
};

/// Blocks in virtual time: park_until() calls a script, which may free units, and then, unless it
/// was unparked, returns as if the whole time had passed.
class ScriptedParker final : public Parker {
 public:
  using Script = std::function<TimePoint(TimePoint until)>;
  explicit ScriptedParker(Script script) : script_(std::move(script)) {}

  TimePoint park_until(TimePoint until) noexcept override {
    ++parks;
    return script_(until);
  }
  void unpark() noexcept override { ++unparks; }

  int parks = 0;
  int unparks = 0;

 private:
  Script script_;
};

/// Blocks the thread until it is unparked, without a timeout: virtual time does not advance. So a
/// lost wake-up is a hang, not a delay.
class PatientParker final : public Parker {
 public:
  TimePoint park_until(TimePoint /*until*/) noexcept override {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return unparked_; });
    unparked_ = false;
    return kStart;
  }
  void unpark() noexcept override {
    const std::scoped_lock lock(mutex_);
    unparked_ = true;
    wake_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool unparked_ = false;
};

}  // namespace weir::inline v0::inline control
