#include "io/service_notice.h"

#include <sys/socket.h>

#include "weir/experimental/io/fd.h"

#include "sockaddr.h"

namespace weir::inline v0::io {

bool notify_service_manager(const std::string& socket, std::string_view state) noexcept {
  constexpr std::size_t kStateBytesMax = 4096;
  const bool known_form = socket.starts_with('/') || socket.starts_with('@');
  if (!known_form || state.empty() || state.size() > kStateBytesMax) return false;
  SocketName name;
  name.address.family = Family::kUnix;
  name.path = socket;
  const Result<RawAddress, IoError> raw = to_raw(name);
  if (!raw) return false;
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  return ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT, &raw->any,
                  raw->size) == static_cast<ssize_t>(state.size());
}

}  // namespace weir::inline v0::io
