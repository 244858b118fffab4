#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/callback.h"
#include "weir/experimental/io/error.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::io {

/// The number of bytes moved (at least 1), or why none were moved.
using IoResult = Result<std::size_t, IoError>;

/// A piece of a gathered write. It has the layout of the kernel's struct iovec.
struct ConstBuffer {
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

/// Set once per socket; sockets accepted from a listener inherit the listener's.
struct SocketOptions {
  std::uint32_t receive_buffer_bytes = 0;  // SO_RCVBUF; 0: the kernel's choice
  std::uint32_t send_buffer_bytes = 0;     // SO_SNDBUF; 0: the kernel's choice
  Duration user_timeout{};                 // TCP_USER_TIMEOUT; 0: the kernel's choice
  bool no_delay = true;
  bool keep_alive = false;

  bool operator==(const SocketOptions&) const = default;
};

/// The events of a Socket, on its loop's thread. Any of them may close the socket.
class SocketEvents {
 public:
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
  /// The peer ended its side while reads were off. Reported once.
  virtual void on_disconnected() = 0;

 protected:
  ~SocketEvents() = default;
};

/// A stream socket on a loop, by readiness: the owner decides when to read and into which buffer,
/// and passes the buffers to write. The socket buffers nothing, so an idle socket holds no memory.
///
/// Promises: watches exactly the requested events (a change costs a system call at the next turn,
/// no change costs none). Disconnects are noticed while reads are off. After close() there are no
/// events. The descriptor is closed after its libuv handle, and `closed` is called when no kernel
/// event can refer to this object any more; only then may its memory be reused. No SIGPIPE.
/// Thread-safety: its loop's thread. Cost: read and write are one system call each.
/// Lifetime: must be closed, and `closed` called, before destruction. Never allocates.
class Socket {
 public:
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  /// Takes ownership of a non-blocking descriptor. Watches nothing yet.
  [[nodiscard]] Result<void, IoError> open(Loop& loop, Fd fd, SocketEvents& events);

  struct Interest {
    bool read = false;
    bool write = false;
    bool operator==(const Interest&) const = default;
  };
  void watch(Interest interest) noexcept;
  [[nodiscard]] Interest watched() const noexcept { return interest_; }

  /// kAgain if there is no data, kEof if the peer ended its side. A short read means that the
  /// socket is empty: another read now would return kAgain.
  [[nodiscard]] IoResult read(std::span<std::byte> into) noexcept;
  [[nodiscard]] IoResult write(std::span<const std::byte> from) noexcept;
  /// At most kGatherMax pieces.
  [[nodiscard]] IoResult write(std::span<const ConstBuffer> pieces) noexcept;
  static constexpr std::size_t kGatherMax = 16;

  /// The result of connect(), once the socket is writable. kAgain is never returned.
  [[nodiscard]] Result<void, IoError> connected() noexcept;
  /// Ends the sending side; the peer may still send.
  void shutdown_write() noexcept;
  /// Makes close() send a reset instead of a FIN.
  void reset_on_close() noexcept;
  void close(Callback<> closed) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0 && !closing_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] Loop& loop() const noexcept { return *loop_; }

 private:
  struct Glue;
  friend struct Glue;
  static constexpr std::size_t kHandleBytes = 160;

  alignas(16) std::array<std::byte, kHandleBytes> handle_{};  // a uv_poll_t
  Loop* loop_ = nullptr;
  SocketEvents* events_ = nullptr;
  Callback<> closed_;
  int fd_ = -1;
  Interest interest_;
  bool closing_ = false;
  bool hung_up_ = false;  // reported once; do not watch for it again
  bool stopped_ = false;  // by libuv, after an error; interest_ says what was watched
};

/// Starts a non-blocking connect: give the descriptor to a Socket, watch for writability, then call
/// connected().
[[nodiscard]] Result<Fd, IoError> connect_to(const SocketName& to, const SocketOptions& options);

/// For a socket that will not be served: sends `last_words` as far as the kernel accepts them, and
/// ends the sending side. Closing it at once could cause a reset that discards them: call
/// read_off() a short time later, then close it.
void say_and_end(int fd, std::string_view last_words) noexcept;
/// Reads and discards what the peer has sent so far (at most 32 KB).
void read_off(int fd) noexcept;

/// Makes the end of this descriptor a reset instead of an orderly end.
void reset_on_close(int fd) noexcept;

/// The peer of a connected descriptor.
[[nodiscard]] Address peer_of(int fd) noexcept;

}  // namespace weir::inline v0::io
