#pragma once

#include <optional>
#include <string_view>

#include "weir/base/ip_range.h"

namespace weir::inline v0::grpc {

/// The address in what gRPC calls a peer: "ipv4:192.0.2.1:8080", "ipv6:[2001:db8::1]:8080", where
/// the brackets may be percent-coded. None for other schemes and for anything malformed.
[[nodiscard]] std::optional<IpAddress> address_of_peer(std::string_view peer) noexcept;

}  // namespace weir::inline v0::grpc
