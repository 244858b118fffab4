#include "weir/experimental/io/listener.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base/number_text.h"

#include "loop_impl.h"
#include "sockaddr.h"
#include "socket_options.h"

namespace weir::inline v0::io {
namespace {

/// Removes the file that a Unix socket left behind. If a process accepts connections, it is kept.
void remove_stale_file(const SocketName& name) {
  if (name.address.family != Family::kUnix || name.path.front() == '@') return;
  struct stat info {};
  if (::lstat(name.path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const Result<Fd, IoError> probe = connect_to(name, {});
  if (!probe && probe.error() == IoError::kRefused) static_cast<void>(::unlink(name.path.c_str()));
}

/// Longer than a round trip to clients and balancers nearby, so that their handshakes can end.
constexpr Duration kHandshakesEnd = std::chrono::milliseconds(20);

/// Without this, a client can finish its handshake between the last accept and the close, and is
/// reset. Best effort: if the kernel refuses the filter, that gap of microseconds remains.
void ignore_new_handshakes(int fd) {
  constexpr std::uint32_t kFlagsByte = 13;  // of the TCP header, where a socket's filter begins
  constexpr std::uint32_t kSyn = 0x02;
  std::array<sock_filter, 4> drop_syn{{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlagsByte),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
  }};
  const sock_fprog program{.len = drop_syn.size(), .filter = drop_syn.data()};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
}

Fd reserve_descriptor() {
  return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Result<Fd, IoError> listen_on(const SocketName& name, const ListenOptions& options) {
  const Result<RawAddress, IoError> raw = to_raw(name);
  if (!raw) return unexpected(raw.error());
  remove_stale_file(name);
  const Family family = name.address.family;
  Fd fd(::socket(raw->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return unexpected(io_error_of(errno));
  const int on = 1;
  const int off = 0;
  if (family != Family::kUnix) {
    static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  }
  if (family == Family::kV6) {
    static_cast<void>(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off));
  }
  set_options(fd.get(), family, options.socket);
  if (::bind(fd.get(), &raw->any, raw->size) != 0) return unexpected(io_error_of(errno));
  if (family == Family::kUnix && name.path.front() != '@' &&
      ::chmod(name.path.c_str(), options.unix_mode) != 0) {
    return unexpected(io_error_of(errno));
  }
  if (::listen(fd.get(), static_cast<int>(options.backlog)) != 0) {
    return unexpected(io_error_of(errno));
  }
  return fd;
}

Result<void, IoError> adopt_listener(int fd, const ListenOptions& options) {
  const auto is = [fd](int what) {
    int value = 0;
    socklen_t size = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, what, &value, &size) == 0 ? value : -1;
  };
  const int domain = is(SO_DOMAIN);
  const bool known = domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX;
  if (!known || is(SO_TYPE) != SOCK_STREAM || is(SO_ACCEPTCONN) != 1) {
    return unexpected(IoError::kInvalid);
  }
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return unexpected(io_error_of(errno));
  }
  set_options(fd, domain == AF_UNIX ? Family::kUnix : Family::kV4, options.socket);
  // On a socket that listens this only changes the length of its queue.
  static_cast<void>(::listen(fd, static_cast<int>(options.backlog)));
  return {};
}

std::vector<InheritedSocket> inherited_sockets(const ListenEnvironment& environment) {
  std::vector<InheritedSocket> found;
  if (parse_number<int>(environment.pid) != static_cast<int>(::getpid())) return found;
  std::string_view names = environment.names;
  const int count = std::min(parse_number<int>(environment.fds).value_or(0), 1024);
  for (int i = 0; i < count; ++i) {
    const std::size_t colon = names.find(':');
    InheritedSocket socket{Fd(environment.first_fd + i), std::string(names.substr(0, colon))};
    names = colon == std::string_view::npos ? std::string_view{} : names.substr(colon + 1);
    const int flags = ::fcntl(socket.fd.get(), F_GETFL);
    if (flags < 0) {
      static_cast<void>(socket.fd.release());  // there is no such descriptor: do not close it
      continue;
    }
    static_cast<void>(::fcntl(socket.fd.get(), F_SETFL, flags | O_NONBLOCK));
    static_cast<void>(::fcntl(socket.fd.get(), F_SETFD, FD_CLOEXEC));
    found.push_back(std::move(socket));
  }
  return found;
}

SocketName bound_name(int fd) {
  RawAddress raw;
  if (::getsockname(fd, &raw.any, &raw.size) != 0) return {};
  SocketName name{from_raw(raw), {}};
  if (raw.any.sa_family == AF_INET6) name.address.family = Family::kV6;
  if (name.address.family == Family::kUnix) {
    const std::size_t length = raw.size - offsetof(sockaddr_un, sun_path);
    name.path.assign(raw.local.sun_path, length);
    if (!name.path.empty() && name.path.front() == '\0') {
      name.path.front() = '@';
    } else {
      while (!name.path.empty() && name.path.back() == '\0') name.path.pop_back();
    }
  }
  return name;
}

class Listener::Impl final : public SocketEvents {
 public:
  Result<void, IoError> start(Loop& loop, Fd listening, const ListenOptions& options,
                              AcceptSink& sink) {
    name_ = bound_name(listening.get());
    options_ = options;
    sink_ = &sink;
    retry_.on_fire(Timer::Fired::to<&Impl::retry>(*this));
    reserve_ = reserve_descriptor();
    Result<void, IoError> opened = socket_.open(loop, std::move(listening), *this);
    if (opened) watch();
    return opened;
  }

  void set_paused(bool paused) {
    paused_ = paused;
    if (socket_.is_open()) watch();
  }

  void set_shared(bool shared) { options_.shared = shared; }

  [[nodiscard]] Fd duplicate() const {
    return Fd(socket_.is_open() ? ::fcntl(socket_.fd(), F_DUPFD_CLOEXEC, 0) : -1);
  }

  void close(Callback<> closed) {
    closed_ = closed;
    socket_.loop().cancel(retry_);
    socket_.close(Callback<>::to<&Impl::on_closed>(*this));
  }

  void drain(Callback<> closed) {
    if (options_.shared) return close(closed);
    closed_ = closed;
    set_paused(true);
    if (name_.address.family != Family::kUnix) ignore_new_handshakes(socket_.fd());
    accept_queue();
    retry_.on_fire(Timer::Fired::to<&Impl::end_drain>(*this));
    socket_.loop().arm(retry_, socket_.loop().now() + kHandshakesEnd);
  }

  void on_readable() override {
    for (std::uint32_t left = options_.accept_budget; left > 0 && watching(); --left) {
      if (!sink_->ready_to_accept()) return;
      if (accept_one() < 0) return failed(io_error_of(errno));
    }
  }
  void on_writable() override {}
  void on_disconnected() override {}

  [[nodiscard]] const SocketName& name() const { return name_; }
  [[nodiscard]] std::uint64_t accepted() const { return accepted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t failures() const { return failed_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] bool watching() const { return socket_.is_open() && !paused_ && !resting_; }
  void watch() { socket_.watch({.read = watching(), .write = false}); }

  void end_drain(TimePoint) {
    accept_queue();
    close(closed_);
  }

  /// All of the kernel's queue, which its backlog bounds.
  void accept_queue() {
    while (accept_one() >= 0) continue;
  }

  int accept_one() {
    RawAddress peer;
    const int fd = accept(peer);
    if (fd < 0) return fd;
    accepted_.fetch_add(1, std::memory_order_relaxed);
    sink_->on_accepted(Fd(fd), from_raw(peer));
    return fd;
  }

  int accept(RawAddress& peer) {
    return socket_.loop().impl().calls->accept(socket_.fd(), &peer.any, &peer.size);
  }

  void failed(IoError error) {
    // A peer that closed while it was in the queue (kReset and similar) is not a failure.
    if (error != IoError::kNoFds && error != IoError::kNoMemory) return;
    failed_.fetch_add(1, std::memory_order_relaxed);
    if (error == IoError::kNoFds) turn_one_away();
    resting_ = true;
    watch();
    socket_.loop().arm(retry_, socket_.loop().now() + options_.retry_after);
    sink_->on_accept_failed(error);
  }

  void turn_one_away() {
    reserve_.reset();
    RawAddress peer;
    const Fd unwanted(accept(peer));
    // `unwanted` is closed here; retry() opens the reserve again.
  }

  void retry(TimePoint) {
    if (!reserve_) reserve_ = reserve_descriptor();
    resting_ = false;
    watch();
  }

  void on_closed() {
    reserve_.reset();
    closed_();
  }

  Socket socket_;
  Timer retry_;
  ListenOptions options_;
  AcceptSink* sink_ = nullptr;
  Callback<> closed_;
  Fd reserve_;
  SocketName name_;
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> failed_{0};
  bool paused_ = false;
  bool resting_ = false;  // until the retry timer fires
};

Listener::Listener() : impl_(std::make_unique<Impl>()) {}
Listener::~Listener() = default;

Result<void, IoError> Listener::start(Loop& loop, Fd listening, const ListenOptions& options,
                                      AcceptSink& sink) {
  return impl_->start(loop, std::move(listening), options, sink);
}

void Listener::pause() noexcept {
  impl_->set_paused(true);
}

void Listener::resume() noexcept {
  impl_->set_paused(false);
}

void Listener::set_shared(bool shared) noexcept {
  impl_->set_shared(shared);
}

Fd Listener::duplicate() const noexcept {
  return impl_->duplicate();
}

void Listener::close(Callback<> closed) noexcept {
  impl_->close(closed);
}

void Listener::drain(Callback<> closed) noexcept {
  impl_->drain(closed);
}

SocketName Listener::name() const {
  return impl_->name();
}

std::uint64_t Listener::accepted() const noexcept {
  return impl_->accepted();
}

std::uint64_t Listener::failed() const noexcept {
  return impl_->failures();
}

}  // namespace weir::inline v0::io
