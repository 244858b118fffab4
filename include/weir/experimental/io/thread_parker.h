#pragma once

#include <condition_variable>
#include <mutex>

#include "weir/base/time.h"

namespace weir::inline v0::io {

/// Blocks one thread until a time, or until another thread wakes it.
///
/// Promises: an unpark() before or during park_until() ends it; one unpark() ends at most one park;
/// several before a park count as one. It never returns early without an unpark().
/// Thread-safety: park_until() from one thread at a time, unpark() from any.
class ThreadParker {
 public:
  /// Returns the time now.
  TimePoint park_until(TimePoint deadline);
  void unpark() noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool unparked_ = false;
};

}  // namespace weir::inline v0::io
