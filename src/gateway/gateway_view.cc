#include "gateway_view.h"

namespace weir::inline v0::gateway {

std::vector<NamedPool> pools_of(const GatewayView& view, const ServerStats& server) {
  PoolStats passages;
  for (const auto& loop : view.core.counters) {
    passages.used += loop->passages.load(std::memory_order_relaxed);
    passages.peak += loop->passages_peak.load(std::memory_order_relaxed);
    passages.exhausted += loop->passages_exhausted.load(std::memory_order_relaxed);
    passages.capacity += view.core.sizes.passages;
  }
  return {{"connections", server.connections},
          {"read_regions", server.read_regions},
          {"write_buffers", server.write_buffers},
          {"backpressure", server.backpressure},
          {"http2_sessions", server.h2_sessions},
          {"streams", server.streams},
          {"body_leases", server.body_leases},
          {"handshake_slots", server.tls.handshake_slots},
          {"passages", passages},
          {"request_buffers", view.core.memory.requests.stats()},
          {"response_regions", view.core.memory.regions.stats()}};
}

}  // namespace weir::inline v0::gateway
