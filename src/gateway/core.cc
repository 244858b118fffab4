#include "core.h"

#include <algorithm>

#include "weir/experimental/io/clock.h"

#include "forward_head.h"
#include "upstream/kept_body.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {

static_assert(BufferingConfig::kBlocksPerBody <= upstream::KeptBody::kBlocksMax);

// A buffer is held until the response begins: by requests in flight, by waiting ones, and by those
// that wait for an endpoint or for their body, which are in no limit.
std::uint32_t GatewaySizes::heads_for(const config::Config& config, std::uint32_t scopes) noexcept {
  // Room for a reload that raises a small max_concurrent.
  constexpr std::uint32_t kConcurrentRoom = 512;
  const AdmissionConfig& admission = config.admission;
  std::uint64_t at_once = std::uint64_t{std::max(admission.max_concurrent, kConcurrentRoom)} +
                          std::uint64_t{admission.waiting_max} * scopes + config.buffering.blocks();
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    at_once += upstream.hold_requests_max;
  }
  const std::uint64_t heads = std::max<std::uint64_t>(config.server.max_connections, at_once);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(config.server.streams_max, heads)) +
         config.server.reserved_streams;
}

GatewaySizes::GatewaySizes(const config::Config& config) noexcept
    : room(UpstreamRoom::laid_out(config)) {
  // Places, buffers and regions are reserved for critical requests, as the server reserves streams.
  reserved = config.server.reserved_streams;
  // Each request has a stream of the server; some still wait for a permit after their stream ended.
  proxied = config.server.streams_max + reserved;
  request_heads = heads_for(config, config.admission_for_scopes().scopes_max);
  request_head_bytes = config.server.head_bytes_max + kForwardHeadRoom;
  // Half of the requests may have a body that is not sent yet.
  const std::uint32_t ordinary = request_heads - reserved;
  tunnels = std::min(config.server.tunnels_max, config.server.streams_max);
  request_bodies = ordinary / 2 + 1 + reserved + tunnels;
  request_body_bytes = config.server.conn_decrypted_buf_size;
  request_buffers = config.buffering.blocks();
  request_buffer_bytes = static_cast<std::size_t>(config.buffering.block_bytes());
  buffer_request_max = config.buffering.buffer_request_max;
  // Eight times the rate below which the server always ends a body: 4 kB/s by default.
  token_cache = config.actors.jwt.cache_size;
  slow_body_rate = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{8} * config.server.body_min_rate, UINT32_MAX));
  response_region_bytes = room.region_bytes;
  session_bytes = upstream::session_block_bytes(response_region_bytes);
  response_regions = std::min(room.connections, ordinary) + reserved;
}

upstream::UpstreamMemory::Shape GatewayCore::memory_shape(const GatewaySizes& sizes,
                                                          std::uint32_t loops) noexcept {
  return {.heads = sizes.request_heads,
          .head_bytes = sizes.request_head_bytes,
          .bodies = sizes.request_bodies,
          .body_bytes = sizes.request_body_bytes,
          .buffers = sizes.request_buffers,
          .buffer_bytes = sizes.request_buffer_bytes,
          .regions = std::max(1U, sizes.response_regions),
          .region_bytes = sizes.response_region_bytes,
          .sessions = sizes.room.sessions,
          .session_bytes = sizes.session_bytes,
          .loops = loops,
          .reserved = sizes.reserved};
}

GatewayCore::GatewayCore(const config::Config& configured, std::uint32_t loops, Rng seed,
                         const Parts& parts)
    : sizes(configured),
      rng(seed),
      controller(configured.admission_for_scopes(), rng.fork(), parts.events),
      memory(memory_shape(sizes, loops)),
      upstreams({.controller = controller,
                 .loops = loops,
                 .reserved = sizes.reserved,
                 .rng = rng.fork(),
                 .observer = parts.observer,
                 .room = sizes.room,
                 .on_gone = parts.on_upstream_gone}),
      access_log(parts.access_log),
      recorder(loops, rng.fork(), {.at = io::monotonic_now(), .unix_us = io::unix_millis() * 1000}),
      config_(configured) {
  config::Config nothing = configured;
  nothing.upstreams.clear();
  upstreams.put_in_force(upstreams.made_for({.before = nothing, .after = configured}, parts.tls));
  // The loops call expire() at next_expiry(). If it is later than this, the process was paused.
  controller.forgive_pauses(std::chrono::milliseconds(5));
  for (std::uint32_t i = 0; i < loops; ++i) counters.push_back(std::make_unique<LoopCounters>());
}

RequestTotals GatewayCore::totals() const {
  RequestTotals all = upstreams.totals();
  for (const auto& loop : counters) all.add(*loop);
  return all;
}

}  // namespace weir::inline v0::gateway
