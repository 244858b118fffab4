#include "io/message_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"

#include "sockaddr.h"

namespace weir::inline v0::io {
namespace {

constexpr std::size_t kDescriptorsMax = 253;  // of one message, in the kernel
constexpr int kBacklog = 8;
constexpr double kPollMillisMax = 60'000;  // then it is asked again

/// Room for the descriptors of one message.
union Control {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> bytes;
};

SocketName local_name(const std::string& path) {
  SocketName name;
  name.address.family = Family::kUnix;
  name.path = path;
  return name;
}

Fd make_socket() {
  return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void replace_stale_socket(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const Result<Fd, IoError> probe = dial_for_messages(path);
  if (!probe && probe.error() == IoError::kRefused) static_cast<void>(::unlink(path.c_str()));
}

std::vector<Fd> descriptors_in(msghdr& header) {
  std::vector<Fd> found;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
      found.emplace_back(fd);
    }
  }
  return found;
}

}  // namespace

Result<Fd, IoError> listen_for_messages(const std::string& path) {
  const Result<RawAddress, IoError> raw = to_raw(local_name(path));
  if (!raw) return unexpected(raw.error());
  replace_stale_socket(path);
  Fd fd = make_socket();
  if (!fd || ::bind(fd.get(), &raw->any, raw->size) != 0 || ::chmod(path.c_str(), 0600) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return unexpected(io_error_of(errno));
  }
  return fd;
}

Result<Fd, IoError> dial_for_messages(const std::string& path) {
  const Result<RawAddress, IoError> raw = to_raw(local_name(path));
  if (!raw) return unexpected(raw.error());
  Fd fd = make_socket();
  if (!fd || ::connect(fd.get(), &raw->any, raw->size) != 0) return unexpected(io_error_of(errno));
  return fd;
}

Result<void, IoError> send_message(int fd, std::string_view bytes,
                                   std::span<const int> descriptors) {
  WEIR_ASSERT(!bytes.empty() && descriptors.size() <= kDescriptorsMax);
  iovec piece{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return unexpected(io_error_of(errno));
  }
  return {};
}

Result<Message, IoError> receive_message(int fd, const MessageBounds& bounds) {
  WEIR_ASSERT(bounds.descriptors_max <= kDescriptorsMax);
  Message message;
  message.bytes.resize(bounds.bytes_max);
  iovec piece{.iov_base = message.bytes.data(), .iov_len = message.bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (bounds.descriptors_max > 0) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * bounds.descriptors_max);
  }
  const ssize_t got = ::recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return unexpected(io_error_of(errno));
  message.descriptors = descriptors_in(header);  // they are closed if the message is not returned
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      message.descriptors.size() > bounds.descriptors_max) {
    return unexpected(IoError::kInvalid);
  }
  if (got == 0) return unexpected(IoError::kEof);
  message.bytes.resize(static_cast<std::size_t>(got));
  return message;
}

bool await_message(int fd, Duration at_most) {
  const TimePoint end = monotonic_now() + at_most;
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  while (true) {
    const TimePoint now = monotonic_now();
    const double left = now < end ? to_millis(end - now) + 1 : 0;
    if (::poll(&one, 1, static_cast<int>(std::min(left, kPollMillisMax))) > 0) return true;
    if (now >= end) return false;
  }
}

void refuse_messages(int fd) noexcept {
  static_cast<void>(::shutdown(fd, SHUT_RD));
}

std::optional<PeerProcess> peer_process(int fd) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return PeerProcess{.user = peer.uid, .pid = peer.pid};
}

bool may_command(const PeerProcess& peer) noexcept {
  return peer.user == 0 || peer.user == ::geteuid();
}

}  // namespace weir::inline v0::io
