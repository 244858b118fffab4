#pragma once

// System calls of a loop that fail on request: the n-th call that moves bytes fails once.

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "weir/experimental/io/loop_threads.h"
#include "weir/experimental/io/syscalls.h"

namespace weir::inline v0::inline server::testkit {

/// One at a time, because function pointers have no object.
class BreakableCalls {
 public:
  BreakableCalls() { mend(); }
  BreakableCalls(const BreakableCalls&) = delete;
  BreakableCalls& operator=(const BreakableCalls&) = delete;
  ~BreakableCalls() { mend(); }

  /// `call` is counted from now; 0 is the next call.
  static void break_at(int call, int error) {
    error_ = error;
    left_ = call;
  }
  static void mend() { left_ = -1; }
  /// Whether the call has failed.
  static bool broke() { return left_.load() < 0; }

  static const io::Syscalls& calls() {
    static const io::Syscalls all = {
        [](int fd, void* into, std::size_t size) -> long {
          return fails() ? -1 : io::system_calls().recv(fd, into, size);
        },
        [](int fd, const void* from, std::size_t size) -> long {
          return fails() ? -1 : io::system_calls().send(fd, from, size);
        },
        [](int fd, const void* pieces, std::size_t count) -> long {
          return fails() ? -1 : io::system_calls().send_pieces(fd, pieces, count);
        },
        io::system_calls().accept};
    return all;
  }

 private:
  static bool fails() {
    if (left_.load() < 0 || left_.fetch_sub(1) != 0) return false;
    errno = error_.load();
    return true;
  }

  static inline std::atomic<int> left_{-1};
  static inline std::atomic<int> error_{0};
};

}  // namespace weir::inline v0::inline server::testkit
