#include "gateway_view.h"

namespace weir::inline v0::gateway {

std::vector<NamedPool> pools_of(const GatewayView& view, const ServerStats& server) {
  PoolStats proxied;
  for (const auto& loop : view.core.counters) {
    proxied.used += loop->proxied.load(std::memory_order_relaxed);
    proxied.peak += loop->proxied_peak.load(std::memory_order_relaxed);
    proxied.exhausted += loop->proxied_exhausted.load(std::memory_order_relaxed);
    proxied.capacity += view.core.sizes.proxied;
  }
  return {{"connections", server.connections},
          {"read_regions", server.read_regions},
          {"write_buffers", server.write_buffers},
          {"backpressure", server.backpressure},
          {"http2_sessions", server.h2_sessions},
          {"streams", server.streams},
          {"tunnels", server.tunnel_places},
          {"http2_tunnels", server.h2_tunnel_places},
          {"body_leases", server.body_leases},
          {"handshake_slots", server.tls.handshake_slots},
          {"proxied_requests", proxied},
          {"request_heads", view.core.memory.heads.stats()},
          {"request_bodies", view.core.memory.bodies.stats()},
          {"request_buffers", view.core.memory.buffers.stats()},
          {"upstream_sessions", view.core.memory.sessions.stats()},
          {"response_regions", view.core.memory.regions.stats()}};
}

}  // namespace weir::inline v0::gateway
