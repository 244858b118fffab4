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

/// Bytes moved (at least 1), or why none.
using IoResult = Result<std::size_t, IoError>;

/// A piece of a gathered write. Same layout as the kernel's.
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

/// Told by a Socket, on its loop's thread. Any of them may close the socket.
class SocketEvents {
 public:
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
  /// The peer ended its side while reads were off. Told once.
  virtual void on_disconnected() = 0;

 protected:
  ~SocketEvents() = default;
};

/// A stream socket on a loop, by readiness: the owner says when it wants to read and into what, and
/// names the buffers it writes. Nothing is buffered here; an idle socket pins no memory of ours.
///
/// Promises: watches exactly what was asked (changing it costs a system call at the next turn,
/// keeping it costs none). Disconnects are noticed while reads are off. close() makes every later
/// event impossible; the descriptor is closed after its handle, and `closed` is called once no
/// kernel event can name this object: only then may the memory be used again. No SIGPIPE.
/// Thread-safety: its loop's thread. Cost: read and write are one system call each.
/// Lifetime: must be closed, and `closed` called, before it dies. Lives in slabs: never allocates.
class Socket {
 public:
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  /// Takes over a non-blocking descriptor. Watches nothing yet.
  [[nodiscard]] Result<void, IoError> open(Loop& loop, Fd fd, SocketEvents& events);

  struct Interest {
    bool read = false;
    bool write = false;
    bool operator==(const Interest&) const = default;
  };
  void watch(Interest interest) noexcept;
  [[nodiscard]] Interest watched() const noexcept { return interest_; }

  /// kAgain when nothing is there, kEof at the peer's end. A short read means that the socket was
  /// empty: another read now would only find kAgain.
  [[nodiscard]] IoResult read(std::span<std::byte> into) noexcept;
  [[nodiscard]] IoResult write(std::span<const std::byte> from) noexcept;
  /// At most kGatherMax pieces.
  [[nodiscard]] IoResult write(std::span<const ConstBuffer> pieces) noexcept;
  static constexpr std::size_t kGatherMax = 16;

  /// After connect(): what became of it, once writable. kAgain is never returned.
  [[nodiscard]] Result<void, IoError> connected() noexcept;
  /// Ends our side, the peer may go on.
  void shutdown_write() noexcept;
  /// Makes close() send a reset instead of an orderly end.
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
  bool hung_up_ = false;  // told once; do not watch for it again
  bool stopped_ = false;  // by libuv, after an error; interest_ says what was watched
};

/// Starts a non-blocking connect: give the descriptor to a Socket, watch for write, ask
/// connected().
[[nodiscard]] Result<Fd, IoError> connect_to(const SocketName& to, const SocketOptions& options);

/// For a socket that nobody will serve: sends `last_words` as far as the kernel takes them, and
/// ends our side. Closing it at once could reset it and take the words away: read_off() first,
/// later.
void say_and_end(int fd, std::string_view last_words) noexcept;
/// Throws away what the peer has sent, as far as it is there (at most 32 KB).
void read_off(int fd) noexcept;

/// The peer of a connected descriptor.
[[nodiscard]] Address peer_of(int fd) noexcept;

}  // namespace weir::inline v0::io
