#pragma once

#include <memory>

#include "weir/experimental/io/callback.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::io {

/// Calls back on a loop when the process receives a signal.
///
/// Thread-safety: its loop's thread. Lifetime: close() before the loop is destroyed.
class SignalWatcher {
 public:
  SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;
  ~SignalWatcher();

  /// False if the system refuses the signal number.
  [[nodiscard]] bool start(Loop& loop, int signal_number, Callback<int> raised);
  void close() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::io
