#pragma once

#include <array>
#include <cstdint>

#include "weir/base/pool_stats.h"
#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/http/h2_session_end.h"
#include "weir/experimental/server/close_reason.h"
#include "weir/experimental/server/handshake_result.h"
#include "weir/experimental/server/proxy_result.h"
#include "weir/policy/pressure.h"

namespace weir::inline v0::inline server {

/// TLS statistics of a server. The memory figures are those of the whole process.
struct TlsStats {
  PoolStats handshake_slots;             // used: handshakes in progress
  std::uint64_t handshakes_waiting = 0;  // for a slot
  std::array<std::uint64_t, static_cast<std::size_t>(HandshakeResult::kCount)> handshakes{};
  std::uint64_t key_updates_exceeded = 0;  // connections closed because of it
  std::uint64_t memory_budget_bytes = 0;   // of the TLS library; 0: not bounded
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t memory_refused = 0;  // allocations

  [[nodiscard]] std::uint64_t handshakes_by(HandshakeResult r) const noexcept {
    return handshakes[static_cast<std::size_t>(r)];
  }
};

/// The statistics of a server. Counters never decrease.
struct ServerStats {
  // Pools: each a hard bound.
  PoolStats connections;
  PoolStats read_regions;  // leased now; capacity = connections
  PoolStats write_buffers;
  PoolStats arenas;
  PoolStats pending_streams;
  PoolStats backpressure;  // connections whose client does not read
  PoolStats h2_sessions;
  PoolStats streams;  // of HTTP/2
  PoolStats tunnel_places;
  PoolStats h2_tunnel_places;  // of them, those of HTTP/2
  PoolStats body_leases;

  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t responses_1xx = 0, responses_2xx = 0, responses_3xx = 0, responses_4xx = 0,
                responses_5xx = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_copied_in = 0;  // received bytes moved again (compaction), not by handlers
  std::uint64_t tunnels = 0;          // open now
  std::uint64_t idle_connections = 0;
  std::uint64_t critical_shed = 0;  // must stay 0
  std::uint64_t blocked_ended = 0;  // requests blocked on their clients, for want of places

  std::uint64_t write_slab_exhaustion_count = 0;
  std::uint64_t pending_write_queue_len = 0;
  PressureLevel pressure = PressureLevel::kNormal;
  TlsStats tls;
  // Connections to listeners that require a PROXY header.
  std::array<std::uint64_t, static_cast<std::size_t>(ProxyResult::kCount)> proxy_headers{};

  std::array<std::uint64_t, static_cast<std::size_t>(CloseReason::kCount)> closed{};
  std::array<std::uint64_t, static_cast<std::size_t>(RefuseReason::kCount)> refused{};

  // HTTP/2.
  std::uint64_t h2_connections = 0;  // since start
  std::uint64_t h2_requests = 0;
  std::uint64_t h2_goaways = 0;               // sent with a last stream
  std::uint64_t h2_outbound_frames_peak = 0;  // most unsent frames ever in one session
  std::array<std::uint64_t, http::kH2GlitchCount> h2_glitches{};
  std::array<std::uint64_t, http::h2::kSessionEndCount>
      h2_ended{};  // "none": the connection was lost
  std::array<std::uint64_t, static_cast<std::size_t>(CloseReason::kCount)> h2_aborted{};  // streams

  [[nodiscard]] std::uint64_t closed_by(CloseReason r) const noexcept {
    return closed[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] std::uint64_t proxy_headers_by(ProxyResult r) const noexcept {
    return proxy_headers[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] std::uint64_t refused_by(RefuseReason r) const noexcept {
    return refused[static_cast<std::size_t>(r)];
  }
};

}  // namespace weir::inline v0::inline server
