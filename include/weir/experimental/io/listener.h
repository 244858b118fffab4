#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/socket.h"

namespace weir::inline v0::io {

struct ListenOptions {
  SocketOptions socket;
  std::uint32_t backlog = 4096;
  std::uint32_t accept_budget = 64;  // sockets accepted per turn, so that requests are served too
  std::uint32_t unix_mode = 0660;    // permissions of a Unix socket's file
  Duration retry_after = std::chrono::milliseconds(50);  // pause after descriptors have run out
  bool shared = false;  // another process holds this socket, too, and serves its queue
};

/// Binds and listens. The options are set here once and inherited by every accepted socket. The
/// file of a Unix socket is replaced if no process listens on it.
[[nodiscard]] Result<Fd, IoError> listen_on(const SocketName& name, const ListenOptions& options);

/// Makes a socket that another process has bound ready for a Listener: not blocking, closed by
/// exec, with these options. kInvalid: it is no stream socket that listens.
[[nodiscard]] Result<void, IoError> adopt_listener(int fd, const ListenOptions& options);

/// The environment variables by which a service manager passes listening sockets.
struct ListenEnvironment {
  std::string_view fds;    // LISTEN_FDS
  std::string_view pid;    // LISTEN_PID
  std::string_view names;  // LISTEN_FDNAMES, colon-separated; may be empty
  int first_fd = 3;        // given by the protocol; tests use another
};
struct InheritedSocket {
  Fd fd;
  std::string name;
};
/// Takes ownership of those descriptors; returns none if they were meant for another process. Call
/// it only once: a second call would own them twice.
[[nodiscard]] std::vector<InheritedSocket> inherited_sockets(const ListenEnvironment& environment);

/// The address that a listening descriptor is bound to (with the real port if 0 was given).
[[nodiscard]] SocketName bound_name(int fd);

/// The events of a Listener, on its loop's thread.
class AcceptSink {
 public:
  /// Called before each accept. False ends the turn: the sink has paused the listener, or will.
  [[nodiscard]] virtual bool ready_to_accept() { return true; }
  virtual void on_accepted(Fd fd, const Address& peer) = 0;
  /// No descriptor or kernel memory was free. If descriptors ran out, one peer in the queue was
  /// accepted with a reserve descriptor and closed. Accepting pauses for `retry_after`.
  virtual void on_accept_failed(IoError error) = 0;

 protected:
  ~AcceptSink() = default;
};

/// Accepts from one listening socket on one loop.
///
/// Promises: at most accept_budget sockets per turn. If descriptors run out, it does not spin: it
/// reports that, pauses, and continues later.
/// Thread-safety: its loop's thread. Cost: one accept4 per socket, plus one per burst that finds
/// nothing (none if the budget ends the burst). Lifetime: must be closed, and `closed` called,
/// before destruction.
class Listener {
 public:
  Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] Result<void, IoError> start(Loop& loop, Fd listening, const ListenOptions& options,
                                            AcceptSink& sink);
  /// Leaves new connections in the kernel's queue until resume().
  void pause() noexcept;
  void resume() noexcept;
  /// Says whether another process holds the socket, too, so that drain() leaves the queue to it.
  void set_shared(bool shared) noexcept;
  /// The descriptor again, for another process; unset if none is free.
  [[nodiscard]] Fd duplicate() const noexcept;
  /// Connections in the kernel's queue are reset, unless another process holds the socket.
  void close(Callback<> closed) noexcept;
  /// As close(), but connections that are established, or in the middle of their handshake, are
  /// accepted first. Newer ones are not answered, and refused when they try again. Takes 20 ms.
  void drain(Callback<> closed) noexcept;

  [[nodiscard]] SocketName name() const;
  [[nodiscard]] std::uint64_t accepted() const noexcept;
  [[nodiscard]] std::uint64_t failed() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::io
