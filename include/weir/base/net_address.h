#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/ip_range.h"
#include "weir/base/result.h"

namespace weir::inline v0 {

enum class NetAddressKind : std::uint8_t {
  kIp,    // ip and port
  kAny,   // port on all addresses; to listen only
  kName,  // a host name (in `text`) and port; to connect only
  kUnix,  // a path (in `text`); a leading '@' means the abstract namespace
};

/// An address to listen on or to connect to, as an operator writes it. Names are not resolved here.
struct NetAddress {
  NetAddressKind kind = NetAddressKind::kAny;
  IpAddress ip;
  std::string text;
  std::uint16_t port = 0;  // 0: any free port, to listen only

  bool operator==(const NetAddress&) const = default;

  /// Whether it can be used to listen; a host name cannot, because it may have several addresses.
  [[nodiscard]] bool can_listen() const noexcept { return kind != NetAddressKind::kName; }
  /// Whether it can be used to connect.
  [[nodiscard]] bool can_connect() const noexcept {
    return kind == NetAddressKind::kUnix || (kind != NetAddressKind::kAny && port != 0);
  }
  /// Whether only this machine can reach it: an address of the loopback interface, or a Unix
  /// socket.
  [[nodiscard]] bool is_loopback() const noexcept;
};

/// Why a text is not an address.
enum class NetAddressFault : std::uint8_t {
  kEmpty,
  kNoPort,   // "127.0.0.1", "[::1]"
  kBadPort,  // not 0 to 65535
  kBadHost,  // neither an address nor a host name; a v6 address without brackets
  kBadPath,  // empty, relative, with a NUL, or longer than 107 bytes
};
WEIR_ENUM_NAMES(NetAddressFault, "empty", "no_port", "bad_port", "bad_host", "bad_path", "unknown")

/// What parse_net_address() accepts, for the `allowed` field of a ConfigError.
inline constexpr std::string_view kNetAddressSyntax =
    "host:port (127.0.0.1:80, [::1]:80, :80 for all addresses, name:80) or unix:/path";

[[nodiscard]] Result<NetAddress, NetAddressFault> parse_net_address(std::string_view text);

/// The text that parse_net_address() reads back.
[[nodiscard]] std::string to_string(const NetAddress& address);

}  // namespace weir::inline v0
