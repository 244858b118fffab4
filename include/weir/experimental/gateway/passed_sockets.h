#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/experimental/io/fd.h"

namespace weir::inline v0::gateway {

/// What a listening socket is for: clients, clients with TLS, operators, a process that takes over.
enum class SocketRole : std::uint8_t { kListen, kTls, kAdmin, kTakeOver };
WEIR_ENUM_NAMES(SocketRole, "listen", "tls", "admin", "take_over")

/// A listening socket that another process has bound. Move-only.
struct PassedSocket {
  io::Fd fd;
  std::optional<SocketRole> role;  // unset: the one who passed it does not know
  std::string configured;          // its address in the configuration of the one who passed it
  std::string name;                // that a service manager gave it
  bool held = false;               // a service manager keeps it open after this process
};

/// The sockets that a gateway gets when it starts.
struct PassedSockets {
  std::vector<PassedSocket> sockets;
  /// They come from a running gateway with another configuration: some may not be wanted any more,
  /// and connections wait in the kernel's queue until Gateway::begin_accepting().
  bool from_predecessor = false;
  std::string ticket_keys{};  // its TLS sessions resume here; empty: they do not
};

}  // namespace weir::inline v0::gateway
