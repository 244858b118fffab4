#include "weir/experimental/io/thread_parker.h"

#include <chrono>

#include "weir/experimental/io/clock.h"

namespace weir::inline v0::io {

TimePoint ThreadParker::park_until(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  // TimePoint and steady_clock are the same monotonic clock.
  const auto until = std::chrono::steady_clock::time_point(deadline.time_since_epoch());
  wake_.wait_until(lock, until, [this] { return unparked_; });
  unparked_ = false;
  return monotonic_now();
}

void ThreadParker::unpark() noexcept {
  {
    const std::lock_guard lock(mutex_);
    unparked_ = true;
  }
  wake_.notify_one();
}

}  // namespace weir::inline v0::io
