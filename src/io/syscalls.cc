#include "weir/experimental/io/syscalls.h"

#include <cstddef>

#include <sys/socket.h>
#include <sys/uio.h>

#include "weir/experimental/io/socket.h"

namespace weir::inline v0::io {
namespace {

static_assert(sizeof(ConstBuffer) == sizeof(iovec));
static_assert(offsetof(ConstBuffer, data) == offsetof(iovec, iov_base));
static_assert(offsetof(ConstBuffer, size) == offsetof(iovec, iov_len));

long real_recv(int fd, void* into, std::size_t size) {
  return ::recv(fd, into, size, 0);
}

long real_send(int fd, const void* from, std::size_t size) {
  return ::send(fd, from, size, MSG_NOSIGNAL);
}

long real_send_pieces(int fd, const void* pieces, std::size_t count) {
  msghdr message{};
  // The kernel does not write through iov_base when it sends.
  message.msg_iov = const_cast<iovec*>(static_cast<const iovec*>(pieces));
  message.msg_iovlen = count;
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

int real_accept(int fd, void* address, unsigned* address_size) {
  return ::accept4(fd, static_cast<sockaddr*>(address), address_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

constexpr Syscalls kReal = {real_recv, real_send, real_send_pieces, real_accept};

}  // namespace

const Syscalls& system_calls() noexcept {
  return kReal;
}

}  // namespace weir::inline v0::io
