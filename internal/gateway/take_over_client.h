#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/passed_sockets.h"
#include "weir/experimental/io/fd.h"

namespace weir::inline v0::gateway {

/// Why a take-over did not begin or end well, for the operator.
struct TakeOverError {
  bool nobody = false;  // no process serves the socket: a start without a take-over is right
  std::string message;
};

/// The new process's side of a take-over: has received the sockets of a running process
/// (predecessor), and says when it is ready to serve.
///
/// Promises: until finish() has returned kAlone or kReleased, the predecessor serves. If this is
/// destroyed before, the predecessor goes on as if nothing had happened.
/// Thread-safety: one owner; calls block for at most the given time. Move-only.
class TakeOver {
 public:
  /// Asks the process that serves `path` for its sockets.
  [[nodiscard]] static Result<TakeOver, TakeOverError> begin(const std::string& path,
                                                             Duration at_most);

  [[nodiscard]] int predecessor() const noexcept { return pid_; }
  /// The listening sockets, to be taken once.
  [[nodiscard]] std::vector<PassedSocket> take_sockets() { return std::move(sockets_); }
  /// The socket at `path`, to be served from now on.
  [[nodiscard]] io::Fd take_listener() { return std::move(listener_); }
  [[nodiscard]] const std::string& ticket_keys() const noexcept { return ticket_keys_; }

  enum class End : std::uint8_t {
    kReleased,  // the predecessor accepts no more
    kAlone,     // the predecessor has ended meanwhile
  };
  /// Says which sockets are taken and waits for the answer. On an error the predecessor serves on,
  /// and this process must not begin.
  [[nodiscard]] Result<End, TakeOverError> finish(const std::vector<bool>& taken, Duration at_most);

 private:
  TakeOver() = default;

  io::Fd control_;
  io::Fd listener_;
  std::vector<PassedSocket> sockets_;
  std::string ticket_keys_;
  int pid_ = 0;
};

}  // namespace weir::inline v0::gateway
