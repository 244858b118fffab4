#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/io/error.h"

namespace weir::inline v0::io {

enum class Family : std::uint8_t { kUnset, kV4, kV6, kUnix };

/// An IP address with port, or "a Unix socket" (whose path is not stored). 24 bytes and trivial to
/// copy, because every connection contains one.
struct Address {
  std::array<std::uint8_t, 16> ip{};  // network order; the first 4 for v4
  std::uint32_t scope = 0;            // v6 link-local interface
  std::uint16_t port = 0;             // host order
  Family family = Family::kUnset;

  bool operator==(const Address&) const = default;

  /// "192.0.2.1:80", "[2001:db8::1]:80", "unix". For logs: it allocates.
  [[nodiscard]] std::string to_string() const;
};

/// An address to listen on or to connect to: an Address, or the path of a Unix socket.
struct SocketName {
  Address address;
  std::string path;  // Unix sockets only; a leading '@' means the abstract namespace

  bool operator==(const SocketName&) const = default;
  [[nodiscard]] std::string to_string() const {
    return address.family == Family::kUnix ? "unix:" + path : address.to_string();
  }
};

/// Reads "127.0.0.1:80", "[::1]:80", ":80" and "*:80" (all v6 and v4 addresses),
/// "unix:/run/x.sock", "unix:@name". Numeric addresses only; resolve.h resolves host names.
[[nodiscard]] Result<SocketName, IoError> parse_socket_name(std::string_view text);
/// The same from an address that was read before; it must not be a host name.
[[nodiscard]] SocketName socket_name_of(const NetAddress& address);

}  // namespace weir::inline v0::io
