#include "weir/experimental/server/stats_json.h"

#include <nlohmann/json.hpp>

#include "weir/experimental/server/memory_budget.h"

namespace weir::inline v0::inline server {
namespace {

using Json = nlohmann::ordered_json;

Json pool(const PoolStats& stats) {
  return {{"used", stats.used},
          {"peak", stats.peak},
          {"capacity", stats.capacity},
          {"exhausted", stats.exhausted}};
}

template <class Names, class Counts>
Json by_name(const Names& names, const Counts& counts) {
  Json object = Json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (names[i] != "none") object[std::string(names[i])] = counts[i];
  }
  return object;
}

}  // namespace

std::string stats_json(const ServerStats& stats, const ServerConfig& config) {
  const Json all = {
      {"connections", pool(stats.connections)},
      {"read_regions", pool(stats.read_regions)},
      {"write_buffers", pool(stats.write_buffers)},
      {"arenas", pool(stats.arenas)},
      {"pending_streams", pool(stats.pending_streams)},
      {"backpressure", pool(stats.backpressure)},
      {"http2_sessions", pool(stats.h2_sessions)},
      {"streams", pool(stats.streams)},
      {"tunnel_places", pool(stats.tunnel_places)},
      {"http2_tunnel_places", pool(stats.h2_tunnel_places)},
      {"body_leases", pool(stats.body_leases)},
      {"handshake_slots", pool(stats.tls.handshake_slots)},
      {"idle_connections", stats.idle_connections},
      {"accepted", stats.accepted},
      {"requests", stats.requests},
      {"responses_1xx", stats.responses_1xx},
      {"responses_2xx", stats.responses_2xx},
      {"responses_3xx", stats.responses_3xx},
      {"responses_4xx", stats.responses_4xx},
      {"responses_5xx", stats.responses_5xx},
      {"bytes_received", stats.bytes_received},
      {"bytes_sent", stats.bytes_sent},
      {"bytes_copied_in", stats.bytes_copied_in},
      {"tunnels", stats.tunnels},
      {"critical_shed", stats.critical_shed},
      {"blocked_ended", stats.blocked_ended},
      {"write_slab_exhaustion_count", stats.write_slab_exhaustion_count},
      {"pending_write_queue_len", stats.pending_write_queue_len},
      {"handshakes_waiting", stats.tls.handshakes_waiting},
      {"key_updates_exceeded", stats.tls.key_updates_exceeded},
      {"tls_memory_bytes", stats.tls.memory_bytes},
      {"tls_memory_peak_bytes", stats.tls.memory_peak_bytes},
      {"tls_memory_budget_bytes", stats.tls.memory_budget_bytes},
      {"tls_memory_refused", stats.tls.memory_refused},
      {"pressure", name_of(stats.pressure)},
      {"ceiling_bytes", worst_case_bytes(config)},
      {"http2_connections", stats.h2_connections},
      {"http2_requests", stats.h2_requests},
      {"http2_goaways", stats.h2_goaways},
      {"http2_outbound_frames_peak", stats.h2_outbound_frames_peak},
      {"handshakes", by_name(kHandshakeResultNames, stats.tls.handshakes)},
      {"proxy_headers", by_name(kProxyResultNames, stats.proxy_headers)},
      {"closed", by_name(kCloseReasonNames, stats.closed)},
      {"http2_glitches", by_name(http::kH2GlitchNames, stats.h2_glitches)},
      {"http2_ended", by_name(http::h2::kSessionEndNames, stats.h2_ended)},
      {"http2_aborted", by_name(kCloseReasonNames, stats.h2_aborted)},
      {"refused", by_name(kRefuseReasonNames, stats.refused)},
  };
  return all.dump() + "\n";
}

}  // namespace weir::inline v0::inline server
