#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/enum_names.h"

#include "http/websocket_key.h"
#include "tunnel_direction.h"

namespace weir::inline v0::gateway {

/// What ended a tunnel: a side of it, its silence, the drain of the gateway, or a bound of the
/// gateway (bytes, a client that does not read).
enum class TunnelEnd : std::uint8_t { kClient, kUpstream, kIdle, kDrain, kServer };
WEIR_ENUM_NAMES(TunnelEnd, "client", "upstream", "idle", "drain", "server")

/// What a proxied request has more if it asks for a tunnel.
struct Tunnel {
  TunnelDirection to_client;
  TunnelDirection to_upstream;
  http::WebSocketKey key;          // of the gateway, for a client that speaks HTTP/2
  std::optional<TunnelEnd> ended;  // by whom, once it is known
  std::uint8_t goodbye_bytes = 0;  // of our Close frame, that the client's connection took
  bool stands = false;             // both sides have agreed
  bool leaving = false;            // the gateway drains
};

}  // namespace weir::inline v0::gateway
