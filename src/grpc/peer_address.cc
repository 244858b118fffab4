#include "peer_address.h"

#include <string_view>
#include <utility>

namespace weir::inline v0::grpc {
namespace {

/// What is between a bracket and the other, both plain or both percent-coded.
std::string_view in_brackets(std::string_view text) noexcept {
  for (const auto& [open, close] : {std::pair{"[", "]:"}, std::pair{"%5B", "%5D:"}}) {
    const std::string_view start(open);
    const std::size_t end = text.rfind(close);
    if (text.starts_with(start) && end != std::string_view::npos && end >= start.size()) {
      return text.substr(start.size(), end - start.size());
    }
  }
  return {};
}

}  // namespace

std::optional<IpAddress> address_of_peer(std::string_view peer) noexcept {
  constexpr std::string_view kV4 = "ipv4:";
  constexpr std::string_view kV6 = "ipv6:";
  if (peer.starts_with(kV4)) {
    peer.remove_prefix(kV4.size());
    return parse_ip(peer.substr(0, peer.rfind(':')));
  }
  if (!peer.starts_with(kV6)) return std::nullopt;
  const std::optional<IpAddress> address = parse_ip(in_brackets(peer.substr(kV6.size())));
  return address ? std::optional(address->normalized()) : std::nullopt;
}

}  // namespace weir::inline v0::grpc
