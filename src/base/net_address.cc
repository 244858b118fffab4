#include "weir/base/net_address.h"

#include <algorithm>
#include <cstddef>

#include "weir/base/number_text.h"

namespace weir::inline v0 {
namespace {

constexpr std::size_t kUnixPathMax = 107;  // sun_path without its final NUL
constexpr std::size_t kNameMax = 253;
constexpr std::size_t kLabelMax = 63;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/// Letters, digits, '-' and '_' in labels; the last label is not a number, so that a mistyped v4
/// address is not taken for a name.
bool is_host_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > kNameMax) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view label = text.substr(0, dot);
    if (label.empty() || label.size() > kLabelMax) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    if (!std::all_of(label.begin(), label.end(), is_name_char)) return false;
    if (dot == std::string_view::npos) return !std::all_of(label.begin(), label.end(), is_digit);
    text.remove_prefix(dot + 1);
  }
}

Result<NetAddress, NetAddressFault> parse_unix(std::string_view path) {
  const bool rooted = path.starts_with('/') || (path.starts_with('@') && path.size() > 1);
  if (!rooted || path.size() > kUnixPathMax || path.find('\0') != std::string_view::npos) {
    return unexpected(NetAddressFault::kBadPath);
  }
  NetAddress address;
  address.kind = NetAddressKind::kUnix;
  address.text = path;
  return address;
}

/// Reads the host part into `address`; false if it is not a host.
bool set_host(NetAddress& address, std::string_view host) {
  if (host.empty() || host == "*") {
    address.kind = NetAddressKind::kAny;
    return true;
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const auto ip = parse_ip(bracketed ? host.substr(1, host.size() - 2) : host);
  if (ip) {
    address.kind = NetAddressKind::kIp;
    address.ip = *ip;
    return ip->v6 == bracketed;
  }
  address.kind = NetAddressKind::kName;
  address.text = host;
  return is_host_name(host);
}

}  // namespace

Result<NetAddress, NetAddressFault> parse_net_address(std::string_view text) {
  if (text.empty()) return unexpected(NetAddressFault::kEmpty);
  if (text.starts_with("unix:")) return parse_unix(text.substr(5));
  const std::size_t colon = text.rfind(':');
  const std::size_t bracket = text.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    return unexpected(NetAddressFault::kNoPort);
  }
  NetAddress address;
  if (!set_host(address, text.substr(0, colon))) return unexpected(NetAddressFault::kBadHost);
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) return unexpected(NetAddressFault::kBadPort);
  address.port = *port;
  return address;
}

bool NetAddress::is_loopback() const noexcept {
  if (kind == NetAddressKind::kUnix) return true;
  if (kind != NetAddressKind::kIp) return false;
  const IpAddress address = ip.normalized();
  return address.v6 ? address == *parse_ip("::1") : address.bytes[0] == 127;
}

std::string to_string(const NetAddress& address) {
  std::string port = ":" + std::to_string(address.port);
  switch (address.kind) {
    case NetAddressKind::kIp:
      return address.ip.v6 ? "[" + to_string(address.ip) + "]" + port
                           : to_string(address.ip) + port;
    case NetAddressKind::kAny:
      return port;
    case NetAddressKind::kName:
      return address.text + port;
    case NetAddressKind::kUnix:
      return "unix:" + address.text;
  }
  return {};
}

}  // namespace weir::inline v0
