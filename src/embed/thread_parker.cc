#include "weir/embed/thread_parker.h"

#include <chrono>

#include "weir/embed/clock.h"

namespace weir::inline v0::embed {

TimePoint ThreadParker::park_until(TimePoint until) noexcept {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, std::chrono::steady_clock::time_point(until.time_since_epoch()),
                   [this] { return unparked_; });
  unparked_ = false;
  return now();
}

void ThreadParker::unpark() noexcept {
  // Notified under the lock: the parker may be destroyed as soon as its thread wakes.
  const std::scoped_lock lock(mutex_);
  unparked_ = true;
  wake_.notify_one();
}

}  // namespace weir::inline v0::embed
