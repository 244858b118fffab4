#include "core.h"

#include <algorithm>

#include "weir/base/assert.h"

#include "forward_head.h"

namespace weir::inline v0::gateway {
namespace {

std::string_view first_scope(const config::Config& config) {
  return config.upstreams.empty() ? std::string_view("default") : config.upstreams.front().name;
}

}  // namespace

GatewaySizes::GatewaySizes(const config::Config& config) noexcept {
  // A critical request finds what it needs at every step, as it finds a stream of the server.
  reserved = config.server.reserved_streams;
  // A request has a stream of the server; some wait for a permit when their stream has gone.
  proxied = config.server.streams_max + reserved;
  // A buffer is held until the answer begins: by those in flight and those who wait.
  const AdmissionConfig admission = config.admission_for_scopes();
  const std::uint64_t at_once = std::uint64_t{admission.max_concurrent} +
                                std::uint64_t{admission.waiting_max} * admission.scopes_max;
  request_buffers = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      config.server.streams_max, std::max<std::uint64_t>(config.server.max_connections, at_once)));
  request_buffer_bytes = upstream::UpstreamMemory::request_bytes(
      config.server.head_bytes_max + kForwardHeadRoom, config.server.conn_decrypted_buf_size);
  // Eight times what the server ends at any time: 4 kB a second unless it is told otherwise.
  slow_body_rate = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{8} * config.server.body_min_rate, UINT32_MAX));
  response_region_bytes = 4096;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    connections += upstream.max_connections;
    response_region_bytes =
        std::max<std::size_t>(response_region_bytes, upstream.response_head_bytes_max);
  }
  response_regions = std::min(connections, request_buffers) + reserved;
  request_buffers += reserved;
}

GatewayCore::GatewayCore(const config::Config& configured,
                         const std::vector<std::vector<io::SocketName>>& endpoints,
                         std::uint32_t loops, Rng seed, EventSink* events,
                         io::LineWriter* access_log_writer)
    : sizes(configured),
      rng(seed),
      controller(configured.admission_for_scopes(), rng.fork(), events, first_scope(configured)),
      memory(sizes.request_buffers, std::max(1U, sizes.response_regions),
             sizes.request_buffer_bytes, sizes.response_region_bytes, loops, sizes.reserved),
      access_log(access_log_writer),
      config_(configured) {
  WEIR_ASSERT(endpoints.size() == configured.upstreams.size());
  for (std::size_t i = 0; i < configured.upstreams.size(); ++i) {
    const upstream::UpstreamConfig& upstream = configured.upstreams[i];
    if (i > 0) {  // the first scope came with the controller
      const ScopeId scope = controller.add_scope(upstream.name, configured.limit_of(upstream));
      WEIR_ASSERT(scope == scope_of(i));
    }
    names.push_back(upstream.name);
    upstreams.push_back(
        std::make_unique<upstream::Upstream>(upstream, endpoints[i], sizes.reserved));
    http::HttpLimits limits;
    limits.head_bytes_max = upstream.response_head_bytes_max;
    response_limits.push_back(limits);
  }
  // The loops call expire() at next_expiry(): later than this, nobody was served meanwhile.
  controller.forgive_pauses(std::chrono::milliseconds(5));
  for (std::uint32_t i = 0; i < loops; ++i) {
    counters.push_back(std::make_unique<LoopCounters>(upstreams.size()));
  }
}

}  // namespace weir::inline v0::gateway
