#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "weir/base/time.h"

namespace weir::inline v0::io {

/// Calls a function again and again on a thread of its own: for work that may block, as on a disk.
///
/// Promises: after stop(), or the destructor, the function has been called once more and is not
/// running. Thread-safety: stop() by its owner.
class Background {
 public:
  Background(Duration every, std::function<void()> work);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { stop(); }

  void stop();

 private:
  void run();

  const Duration every_;
  const std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace weir::inline v0::io
