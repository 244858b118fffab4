#pragma once

#include <condition_variable>
#include <mutex>

#include "weir/base/time.h"
#include "weir/control/parker.h"

namespace weir::inline v0::embed {

/// The usual Parker: blocks a thread on a condition variable. One per thread, or one per call of
/// AdmissionController::admit().
///
/// Promises: an unpark() before or during park_until() ends it; several before it count as one.
/// Thread-safety: park_until() from one thread at a time, unpark() from any.
class ThreadParker final : public Parker {
 public:
  TimePoint park_until(TimePoint until) noexcept override;
  void unpark() noexcept override;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool unparked_ = false;
};

}  // namespace weir::inline v0::embed
