#include "core.h"

#include <algorithm>

#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"

#include "forward_head.h"
#include "upstream/discovery/make_source.h"

namespace weir::inline v0::gateway {
namespace {

std::string_view first_scope(const config::Config& config) {
  return config.upstreams.empty() ? std::string_view("default") : config.upstreams.front().name;
}

/// The endpoints of an upstream that has addresses only; otherwise none yet.
std::vector<upstream::DiscoveredEndpoint> fixed_endpoints(const upstream::UpstreamConfig& config) {
  std::vector<upstream::DiscoveredEndpoint> all;
  for (const upstream::SourceSpec& spec : config.endpoints) {
    if (spec.dynamic()) return {};
    upstream::DiscoveredEndpoint& one = all.emplace_back(endpoint_at(spec));
    one.weight = spec.attributes.weight;
    one.zone = spec.attributes.zone;
    one.draining = spec.attributes.draining;
  }
  return all;
}

}  // namespace

GatewaySizes::GatewaySizes(const config::Config& config) noexcept {
  // Places, buffers and regions are reserved for critical requests, as the server reserves streams.
  reserved = config.server.reserved_streams;
  // Each request has a stream of the server; some still wait for a permit after their stream ended.
  proxied = config.server.streams_max + reserved;
  // A buffer is held until the response begins: by requests in flight and by waiting ones.
  const AdmissionConfig admission = config.admission_for_scopes();
  // Room for a reload that raises a small max_concurrent.
  constexpr std::uint32_t kConcurrentRoom = 512;
  const std::uint64_t at_once = std::uint64_t{std::max(admission.max_concurrent, kConcurrentRoom)} +
                                std::uint64_t{admission.waiting_max} * admission.scopes_max;
  request_heads = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      config.server.streams_max, std::max<std::uint64_t>(config.server.max_connections, at_once)));
  request_head_bytes = config.server.head_bytes_max + kForwardHeadRoom;
  // Half of the requests may have a body that is not sent yet.
  request_bodies = request_heads / 2 + 1 + reserved;
  request_body_bytes = config.server.conn_decrypted_buf_size;
  // Eight times the rate below which the server always ends a body: 4 kB/s by default.
  slow_body_rate = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{8} * config.server.body_min_rate, UINT32_MAX));
  response_region_bytes = 4096;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    connections += upstream.max_connections;
    response_region_bytes =
        std::max<std::size_t>(response_region_bytes, upstream.response_head_bytes_max);
  }
  constexpr std::uint32_t kSessionsPerUpstream = 64;  // each carries up to 100 requests
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    if (!upstream.may_speak_http2()) continue;
    sessions += std::min(upstream.max_connections, kSessionsPerUpstream);
  }
  session_bytes = upstream::session_block_bytes(response_region_bytes);
  response_regions = std::min(connections, request_heads) + reserved;
  request_heads += reserved;
}

upstream::UpstreamMemory::Shape GatewayCore::memory_shape(const GatewaySizes& sizes,
                                                          std::uint32_t loops) noexcept {
  return {.heads = sizes.request_heads,
          .head_bytes = sizes.request_head_bytes,
          .bodies = sizes.request_bodies,
          .body_bytes = sizes.request_body_bytes,
          .regions = std::max(1U, sizes.response_regions),
          .region_bytes = sizes.response_region_bytes,
          .sessions = sizes.sessions,
          .session_bytes = sizes.session_bytes,
          .loops = loops,
          .reserved = sizes.reserved};
}

GatewayCore::GatewayCore(const config::Config& configured, std::uint32_t loops, Rng seed,
                         const Parts& parts)
    : sizes(configured),
      rng(seed),
      controller(configured.admission_for_scopes(), rng.fork(), parts.events,
                 first_scope(configured)),
      memory(memory_shape(sizes, loops)),
      access_log(parts.access_log),
      config_(configured) {
  for (std::size_t i = 0; i < configured.upstreams.size(); ++i) {
    const upstream::UpstreamConfig& upstream = configured.upstreams[i];
    if (i > 0) {  // the constructor of the controller made the first scope
      const ScopeId scope = controller.add_scope(upstream.name, configured.limit_of(upstream));
      WEIR_ASSERT(scope == scope_of(i));
    }
    names.push_back(upstream.name);
    upstreams.push_back(std::make_unique<upstream::Upstream>(
        upstream::Upstream::Setup{.config = upstream,
                                  .loops = loops,
                                  .reserved = sizes.reserved,
                                  .rng = rng.fork(),
                                  .observer = parts.observer,
                                  .tls = parts.tls.empty() ? nullptr : parts.tls[i]},
        fixed_endpoints(upstream), io::monotonic_now()));
    http::HttpLimits limits;
    limits.head_bytes_max = upstream.response_head_bytes_max;
    response_limits.push_back(limits);
  }
  // The loops call expire() at next_expiry(). If it is later than this, the process was paused.
  controller.forgive_pauses(std::chrono::milliseconds(5));
  for (std::uint32_t i = 0; i < loops; ++i) {
    counters.push_back(std::make_unique<LoopCounters>(upstreams.size()));
  }
}

}  // namespace weir::inline v0::gateway
