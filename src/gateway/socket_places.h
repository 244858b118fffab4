#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/passed_sockets.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::gateway {

/// An address of the configuration that the gateway listens on.
struct SocketPlace {
  SocketRole role = SocketRole::kListen;
  std::string address;  // as in the configuration

  bool operator==(const SocketPlace&) const = default;
};

/// All of them: listen.addresses, tls.listen if TLS is spoken, admin.listen,
/// admin.actions_socket if it is used.
[[nodiscard]] std::vector<SocketPlace> socket_places(const config::Config& config);

/// What is known of a passed socket.
struct SocketOffer {
  io::SocketName bound;
  std::optional<SocketRole> role;
  std::string configured;
};

/// Which socket serves which address:
///   1. one whose former configuration had the same role and text ("127.0.0.1:0" again),
///   2. one that is bound to this address and has the same role, or none,
///   3. one that is bound to this address,
///   4. with `by_role`: any other of the same role, in order; a service manager's name for a
///      socket is stronger than the address in the file.
/// Promises: each socket is used once at most. Thread-safety: pure.
/// Returns the index of the socket for each place; unset where none fits.
[[nodiscard]] std::vector<std::optional<std::size_t>> match_sockets(
    std::span<const SocketPlace> places, std::span<const SocketOffer> offers, bool by_role);

/// The sentence for sockets of a service manager that no place has; empty if all are used.
[[nodiscard]] std::string unused_objection(std::span<const SocketOffer> offers,
                                           std::span<const std::optional<std::size_t>> matched);

}  // namespace weir::inline v0::gateway
