#include "weir/experimental/io/address.h"

#include <cstddef>
#include <cstring>

#include <arpa/inet.h>

#include "sockaddr.h"

namespace weir::inline v0::io {
std::string Address::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  switch (family) {
    case Family::kV4:
      ::inet_ntop(AF_INET, ip.data(), text, sizeof text);
      return std::string(text) + ':' + std::to_string(port);
    case Family::kV6:
      ::inet_ntop(AF_INET6, ip.data(), text, sizeof text);
      return '[' + std::string(text) + "]:" + std::to_string(port);
    case Family::kUnix:
      return "unix";
    case Family::kUnset:
      break;
  }
  return "unset";
}

Result<SocketName, IoError> parse_socket_name(std::string_view text) {
  const auto address = parse_net_address(text);
  if (!address || !address->can_listen()) return unexpected(IoError::kInvalid);
  return socket_name_of(*address);
}

SocketName socket_name_of(const NetAddress& address) {
  SocketName name;
  if (address.kind == NetAddressKind::kUnix) {
    name.address.family = Family::kUnix;
    name.path = address.text;
    return name;
  }
  const bool v6 = address.ip.v6 || address.kind == NetAddressKind::kAny;
  name.address.family = v6 ? Family::kV6 : Family::kV4;
  name.address.ip = address.ip.bytes;
  name.address.port = address.port;
  return name;
}

Result<RawAddress, IoError> to_raw(const SocketName& name) noexcept {
  RawAddress raw;
  const Address& from = name.address;
  switch (from.family) {
    case Family::kV4:
      raw.v4.sin_family = AF_INET;
      raw.v4.sin_port = htons(from.port);
      std::memcpy(&raw.v4.sin_addr, from.ip.data(), 4);
      raw.size = sizeof raw.v4;
      return raw;
    case Family::kV6:
      raw.v6.sin6_family = AF_INET6;
      raw.v6.sin6_port = htons(from.port);
      raw.v6.sin6_scope_id = from.scope;
      std::memcpy(&raw.v6.sin6_addr, from.ip.data(), 16);
      raw.size = sizeof raw.v6;
      return raw;
    case Family::kUnix: {
      if (name.path.empty() || name.path.size() >= sizeof raw.local.sun_path) break;
      raw.local.sun_family = AF_UNIX;
      std::memcpy(raw.local.sun_path, name.path.data(), name.path.size());
      raw.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.path.size());
      if (name.path.front() == '@') {
        raw.local.sun_path[0] = '\0';  // abstract: the name is not NUL-terminated
      } else {
        ++raw.size;
      }
      return raw;
    }
    case Family::kUnset:
      break;
  }
  return unexpected(IoError::kInvalid);
}

Address from_raw(const RawAddress& raw) noexcept {
  Address address;
  switch (raw.any.sa_family) {
    case AF_INET:
      address.family = Family::kV4;
      address.port = ntohs(raw.v4.sin_port);
      std::memcpy(address.ip.data(), &raw.v4.sin_addr, 4);
      break;
    case AF_INET6: {
      address.port = ntohs(raw.v6.sin6_port);
      const auto* bytes = raw.v6.sin6_addr.s6_addr;
      if (IN6_IS_ADDR_V4MAPPED(&raw.v6.sin6_addr)) {  // a v4 client of a v6 socket: stored as v4
        address.family = Family::kV4;
        std::memcpy(address.ip.data(), bytes + 12, 4);
      } else {
        address.family = Family::kV6;
        address.scope = raw.v6.sin6_scope_id;
        std::memcpy(address.ip.data(), bytes, 16);
      }
      break;
    }
    case AF_UNIX:
      address.family = Family::kUnix;
      break;
    default:
      break;
  }
  return address;
}

}  // namespace weir::inline v0::io
