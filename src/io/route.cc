#include "route.h"

#include <cerrno>

#include <sys/socket.h>

#include "weir/experimental/io/fd.h"

#include "sockaddr.h"

namespace weir::inline v0::io {

bool has_route(const Address& to) noexcept {
  SocketName name;
  name.address = to;
  name.address.port = 53;  // any: connecting a datagram socket only looks for the route
  const Result<RawAddress, IoError> raw = to_raw(name);
  if (!raw) return false;
  const Fd probe(::socket(raw->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return errno != EAFNOSUPPORT;
  if (::connect(probe.get(), &raw->any, raw->size) == 0) return true;
  switch (errno) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL:  // a link-local address without its interface
      return false;
    default:
      return true;
  }
}

}  // namespace weir::inline v0::io
