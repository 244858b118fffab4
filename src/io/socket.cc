#include "weir/experimental/io/socket.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <uv.h>

#include "weir/base/assert.h"

#include "loop_impl.h"
#include "sockaddr.h"
#include "socket_options.h"

namespace weir::inline v0::io {

/// Connects Socket, whose header does not include libuv, with its uv_poll_t.
struct Socket::Glue {
  static_assert(sizeof(uv_poll_t) <= kHandleBytes && alignof(uv_poll_t) <= 16);

  static uv_poll_t* handle(Socket& socket) noexcept {
    return reinterpret_cast<uv_poll_t*>(socket.handle_.data());
  }
  static Socket& owner(void* handle) noexcept {
    return *static_cast<Socket*>(static_cast<uv_handle_t*>(handle)->data);
  }

  static void apply(Socket& socket) noexcept {
    int events = 0;
    if (socket.interest_.read) events |= UV_READABLE;
    if (socket.interest_.write) events |= UV_WRITABLE;
    // While reads are on, the end is found by reading.
    if (!socket.interest_.read && !socket.hung_up_) events |= UV_DISCONNECT;
    const int status = events == 0 ? uv_poll_stop(handle(socket))
                                   : uv_poll_start(handle(socket), events, on_event);
    WEIR_ASSERT(status == 0);
    socket.stopped_ = false;
  }

  static void on_event(uv_poll_t* poll, int status, int events) {
    Socket& socket = owner(poll);
    if (status != 0) return on_error(socket);
    if ((events & UV_READABLE) != 0 && socket.interest_.read) socket.events_->on_readable();
    if ((events & UV_WRITABLE) != 0 && socket.is_open() && socket.interest_.write) {
      socket.events_->on_writable();
    }
    if ((events & UV_DISCONNECT) != 0 && socket.is_open() && !socket.interest_.read) {
      hang_up(socket);
    }
  }

  /// libuv has stopped the handle. An owner that watches gets the error from its own read or write.
  /// If bytes arrived before the error, its first call returns these, so the event is repeated
  /// while it watches. An owner that watches nothing gets on_disconnected().
  static void on_error(Socket& socket) {
    socket.stopped_ = true;
    if (socket.interest_.read) {
      socket.events_->on_readable();
    } else if (socket.interest_.write) {
      socket.events_->on_writable();
    }
    if (!socket.is_open()) return;
    if (socket.interest_ == Interest{}) return hang_up(socket);
    if (socket.stopped_) apply(socket);
  }

  static void hang_up(Socket& socket) {
    if (std::exchange(socket.hung_up_, true)) return;
    apply(socket);  // otherwise it would be reported at every turn
    socket.events_->on_disconnected();
  }
};

Socket::~Socket() {
  WEIR_ASSERT(loop_ == nullptr);
}

Result<void, IoError> Socket::open(Loop& loop, Fd fd, SocketEvents& events) {
  WEIR_ASSERT(loop_ == nullptr);
  uv_poll_t* handle = ::new (static_cast<void*>(handle_.data())) uv_poll_t;
  const int status = uv_poll_init(&loop.impl().uv, handle, fd.get());
  if (status != 0) return unexpected(io_error_of(-status));
  handle->data = this;
  loop_ = &loop;
  events_ = &events;
  fd_ = fd.release();
  interest_ = {};
  closing_ = false;
  hung_up_ = false;
  stopped_ = false;
  return {};
}

void Socket::watch(Interest interest) noexcept {
  WEIR_ASSERT(is_open());
  if (interest == interest_) return;
  interest_ = interest;
  Glue::apply(*this);
}

IoResult Socket::read(std::span<std::byte> into) noexcept {
  const long got = loop_->impl().calls->recv(fd_, into.data(), into.size());
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return unexpected(IoError::kEof);
  return unexpected(io_error_of(errno));
}

IoResult Socket::write(std::span<const std::byte> from) noexcept {
  const long put = loop_->impl().calls->send(fd_, from.data(), from.size());
  if (put >= 0) return static_cast<std::size_t>(put);
  return unexpected(io_error_of(errno));
}

IoResult Socket::write(std::span<const ConstBuffer> pieces) noexcept {
  if (pieces.size() == 1) return write(std::span(pieces[0].data, pieces[0].size));
  WEIR_ASSERT(pieces.size() <= kGatherMax);
  const long put = loop_->impl().calls->send_pieces(fd_, pieces.data(), pieces.size());
  if (put >= 0) return static_cast<std::size_t>(put);
  return unexpected(io_error_of(errno));
}

Result<void, IoError> Socket::connected() noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return unexpected(io_error_of(error));
  return {};
}

void Socket::shutdown_write() noexcept {
  static_cast<void>(::shutdown(fd_, SHUT_WR));
}

void Socket::reset_on_close() noexcept {
  io::reset_on_close(fd_);
}

void Socket::close(Callback<> closed) noexcept {
  WEIR_ASSERT(is_open());
  closing_ = true;
  closed_ = closed;
  uv_close(reinterpret_cast<uv_handle_t*>(Glue::handle(*this)), [](uv_handle_t* handle) {
    Socket& self = Glue::owner(handle);
    self.loop_ = nullptr;
    self.closed_();
  });
  // The handle has left the kernel's set: the descriptor can be closed and its number reused.
  close_fd(std::exchange(fd_, -1));
}

void set_options(int fd, Family family, const SocketOptions& options) noexcept {
  const auto set = [fd](int level, int name, int value) {
    static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value));
  };
  if (options.receive_buffer_bytes != 0) {
    set(SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.receive_buffer_bytes));
  }
  if (options.send_buffer_bytes != 0) {
    set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.send_buffer_bytes));
  }
  if (family == Family::kUnix) return;
  if (options.no_delay) set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.keep_alive) set(SOL_SOCKET, SO_KEEPALIVE, 1);
  if (options.user_timeout > Duration::zero()) {
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(to_millis(options.user_timeout)));
  }
}

Result<Fd, IoError> connect_to(const SocketName& to, const SocketOptions& options) {
  const Result<RawAddress, IoError> raw = to_raw(to);
  if (!raw) return unexpected(raw.error());
  Fd fd(::socket(raw->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return unexpected(io_error_of(errno));
  set_options(fd.get(), to.address.family, options);
  // A Unix socket whose backlog is full returns EAGAIN: a refusal, the connect is not in progress.
  if (::connect(fd.get(), &raw->any, raw->size) != 0 && errno != EINPROGRESS) {
    return unexpected(errno == EAGAIN ? IoError::kRefused : io_error_of(errno));
  }
  return fd;
}

void say_and_end(int fd, std::string_view last_words) noexcept {
  static_cast<void>(::send(fd, last_words.data(), last_words.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  static_cast<void>(::shutdown(fd, SHUT_WR));
}

void read_off(int fd) noexcept {
  std::array<char, 4096> waste;
  for (int i = 0; i < 8 && ::recv(fd, waste.data(), waste.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

void reset_on_close(int fd) noexcept {
  const linger now{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
}

Address peer_of(int fd) noexcept {
  RawAddress raw;
  if (::getpeername(fd, &raw.any, &raw.size) != 0) return {};
  return from_raw(raw);
}

}  // namespace weir::inline v0::io
