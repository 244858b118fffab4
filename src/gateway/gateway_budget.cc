#include "weir/experimental/gateway/gateway_budget.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "weir/base/byte_size.h"
#include "weir/control/admission_controller.h"
#include "weir/experimental/io/loop_threads.h"

#include "admin_server.h"
#include "core.h"
#include "decision_recorder.h"
#include "live/live_sampler.h"
#include "proxied_request.h"
#include "token_verifier.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t loops_of(const config::Config& config) {
  return config.server.loops == 0 ? io::usable_cores() : config.server.loops;
}

/// OpenSSL's memory towards the endpoints of upstreams with TLS: each connection may be in its
/// handshake, and each loop keeps a session per endpoint. Without clients that use TLS, also what
/// the threads keep for reuse. Upstreams that a reload adds have as many endpoints as the largest.
std::uint64_t dial_tls_bytes(const config::Config& config) {
  constexpr std::uint64_t kThreadCache = 3328 * 1024;
  constexpr std::uint64_t kSpareEndpoints = 16;  // at least
  const UpstreamRoom room = UpstreamRoom::laid_out(config);
  if (room.tls_connections == 0) return 0;
  std::uint64_t sessions = 0;
  std::uint64_t connections = 0;
  std::uint64_t largest = kSpareEndpoints;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    if (!upstream.tls_enabled) continue;
    std::uint64_t endpoints = 0;
    for (const upstream::SourceSpec& spec : upstream.endpoints) {
      endpoints += upstream::endpoints_max(spec, config.dns.records_max);
    }
    connections += upstream.max_connections;
    sessions += endpoints;
    largest = std::max(largest, endpoints);
  }
  if (room.tls_connections > connections) sessions += largest;
  std::uint64_t bytes = room.tls_connections * io::kTlsClientHandshakeBytes +
                        loops_of(config) * sessions * io::kTlsSessionBytes;
  if (!config.server.tls.enabled()) bytes += (loops_of(config) + 1) * kThreadCache;
  return bytes;
}

/// Endpoints that the upstreams may have. Each one that a reload adds has as many as the largest.
std::uint64_t endpoints_max(const config::Config& config) {
  std::uint64_t all = 0;
  std::uint64_t largest = 16;  // at least
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    std::uint64_t endpoints = 0;
    for (const upstream::SourceSpec& spec : upstream.endpoints) {
      endpoints += upstream::endpoints_max(spec, config.dns.records_max);
    }
    all += endpoints;
    largest = std::max(largest, endpoints);
  }
  return all + config.reload.upstreams_spare * largest;
}

}  // namespace

LiveSampler::Bounds live_bounds(const config::Config& config) {
  return {.upstreams = UpstreamRoom::laid_out(config).upstreams,
          .endpoints = static_cast<std::size_t>(endpoints_max(config))};
}

namespace {

/// The largest addends, largest first, and the sum of the others.
std::vector<MemoryAddend> largest(std::vector<MemoryAddend> addends) {
  constexpr std::size_t kShown = 6;
  std::stable_sort(
      addends.begin(), addends.end(),
      [](const MemoryAddend& a, const MemoryAddend& b) { return a.bytes() > b.bytes(); });
  if (addends.size() <= kShown) return addends;
  std::uint64_t others = 0;
  for (std::size_t i = kShown; i < addends.size(); ++i) others += addends[i].bytes();
  addends.resize(kShown);
  addends.push_back({"all others", 1, others, ""});
  return addends;
}

}  // namespace

std::uint64_t gateway_tls_bytes(const config::Config& config) {
  return tls_memory_bytes(config.server) + dial_tls_bytes(config);
}

ServerConfig gateway_server_config(const config::Config& config) {
  ServerConfig server = config.server;
  server.http2.extended_connect = true;
  server.arena_pool_size = 0;
  server.reserved_arenas = 0;
  server.pending_stream_pool_size = 0;
  return server;
}

MemoryBudget gateway_budget(const config::Config& config) {
  const GatewaySizes sizes(config);
  const std::uint64_t loops = loops_of(config);
  MemoryBudget budget = memory_budget(gateway_server_config(config));
  const std::uint64_t before = budget.total_bytes();
  const auto add = [&](std::string_view holder, std::uint64_t count, std::uint64_t each,
                       std::string_view note) {
    budget.addends.push_back({holder, count, each, note});
  };
  // One place per request; a place that was used stays resident, on every loop.
  add("gateway requests", loops * sizes.proxied, sizeof(ProxiedRequest) + 2 * sizeof(std::uint32_t),
      "loops × requests at once");
  // To the upstreams: heads until the response begins; bodies that are unsent, or kept for a retry.
  add("gateway request heads", sizes.request_heads, sizes.request_head_bytes,
      "head_bytes_max × requests at once");
  add("gateway request bodies", sizes.request_bodies - sizes.tunnels, sizes.request_body_bytes,
      "conn_decrypted_buf_size × half the requests");
  add("gateway tunnels", sizes.tunnels, sizes.request_body_bytes,
      "conn_decrypted_buf_size × tunnels_max");
  // Bodies that are received before the request is forwarded.
  add("gateway request buffers", sizes.request_buffers, sizes.request_buffer_bytes,
      "buffer_request_pool, in quarters of buffer_request_max");
  // From the upstreams: leased while bytes are pending.
  add("gateway response regions", sizes.response_regions, sizes.response_region_bytes,
      "response_head_bytes_max × requests at once");
  add("gateway path readings", loops, sizes.request_head_bytes, "loops × head_bytes_max");
  add("gateway verified tokens", loops, TokenVerifier::bytes_for(config.actors.jwt.cache_size),
      "loops × actors.jwt.cache_size");
  add("gateway upstream connections", loops * sizes.room.connections,
      upstream::connection_bytes() + 2 * sizeof(std::uint32_t),
      "loops × max_connections, those spare for reloads included");
  add("gateway upstream sessions", sizes.room.sessions, sizes.session_bytes,
      "HTTP/2, up to 100 requests each");
  add("gateway upstream TLS", 1, dial_tls_bytes(config),
      "max_connections of upstreams with TLS × 112 KiB + sessions");
  add("gateway upstream watchers", loops * sizes.room.connections, 2 * sizeof(void*),
      "libuv, by descriptor");
  add("gateway admission", 1, AdmissionController::memory_bytes(config.admission_for_scopes()),
      "actor and peer tables, waiting rooms, windows");
  add("gateway counters", loops * (sizes.room.upstreams + 1), sizeof(UpstreamCounters),
      "loops × upstreams, spare ones included");
  add("gateway endpoints", endpoints_max(config),
      sizeof(upstream::Endpoint) +
          loops * (sizeof(upstream::EndpointCounters) + sizeof(control::OutgoingQueue)) +
          upstream::kReadClassesMax * sizeof(upstream::ReadLatency),
      "endpoints, spare ones included; a queue per loop, 2 KiB per route for the latencies of "
      "reads");
  // With files: copied from the rings at once, in bytes for the file, and pieces of it.
  add("gateway recorder", config.recorder.folder.empty() ? 1 : 5, DecisionRecorder::kBytes,
      "the newest decisions; 4 more if recorder.folder is set");
  add("gateway logs", 4, kLogBufferBytes, "two logs, two buffers each");
  if (config.admin.serves()) {
    add("gateway admin", 1, admin_worst_case_bytes(config),
        "its own small server, pages and messages under way");
    add("gateway history", 1, LiveSampler::memory_bytes(live_bounds(config)),
        "a quarter of an hour of each upstream, 20 seconds of each endpoint");
  }
  const std::uint64_t own = budget.total_bytes() - before;
  add("gateway page tables", own / kPage + 512, 8, "8 bytes per page");

  const auto kernel = [&](std::string_view holder, std::uint64_t each, std::string_view note) {
    budget.kernel.push_back({holder, sizes.room.connections, each, note});
  };
  constexpr std::uint64_t kMega = 1024 * 1024;
  kernel("upstream receive buffers", 6 * kMega, "not set: net.ipv4.tcp_rmem");
  kernel("upstream send buffers", 4 * kMega, "not set: net.ipv4.tcp_wmem");
  return budget;
}

std::uint64_t gateway_descriptors(const config::Config& config) {
  constexpr std::uint64_t kOfItsOwn = 64;  // listeners, logs, certificates, signals
  constexpr std::uint64_t kRefused = 256;  // sockets being refused with 503
  constexpr std::uint64_t kPerLoop = 8;    // libuv's
  std::uint64_t sum = kOfItsOwn + kRefused + kPerLoop * loops_of(config);
  sum += config.server.max_connections + GatewaySizes(config).room.connections;
  if (config.admin.serves()) sum += admin_server_config(config).max_connections;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    for (const upstream::SourceSpec& spec : upstream.endpoints) sum += spec.dynamic() ? 4U : 0U;
  }
  return sum;
}

std::uint64_t gateway_descriptors_min(const config::Config& config) {
  constexpr std::uint64_t kPerLoop = 4;    // libuv's: epoll, wake-up, a pipe for signals
  constexpr std::uint64_t kOfItsOwn = 16;  // logs, /proc, certificates, a client and an upstream
  const std::uint64_t loops = loops_of(config) + 2;  // plus the loops of admin and signals
  return kPerLoop * loops + kOfItsOwn + config.server.listen.size() +
         config.server.tls.listen.size();
}

std::string to_table(const std::vector<MemoryAddend>& addends) {
  std::ostringstream out;
  for (const MemoryAddend& addend : addends) {
    if (addend.bytes() == 0) continue;
    out << std::setw(12) << to_human(ByteSize(addend.bytes())) << "  " << std::left << std::setw(30)
        << addend.holder << std::right << std::setw(9) << addend.count << " x " << std::setw(10)
        << to_human(ByteSize(addend.bytes_each)) << "  " << addend.note << "\n";
  }
  return out.str();
}

std::string budget_objection(const config::Config& config,
                             std::optional<std::uint64_t> cgroup_limit) {
  const MemoryBudget budget = gateway_budget(config);
  const std::uint64_t ceiling = budget.total_bytes();
  const auto above = [&](std::uint64_t limit, const std::string& what) {
    return "the memory ceiling of this configuration is " + to_human(ByteSize(ceiling)) +
           ", above " + what + " of " + to_human(ByteSize(limit)) + ":\n" +
           to_table(largest(budget.addends)) +
           "Lower what decides the largest (`weir budget` shows all of them), or raise the limit";
  };
  if (config.server.memory_max > 0 && ceiling > config.server.memory_max) {
    return above(config.server.memory_max, "server.memory_max");
  }
  if (cgroup_limit && ceiling > *cgroup_limit) return above(*cgroup_limit, "the cgroup's limit");
  return {};
}

std::optional<std::uint64_t> own_cgroup_limit(const io::MemorySource& source) {
  const std::uint64_t limit = io::read_memory(source).smallest_limit_bytes;
  return limit > 0 ? std::optional(limit) : std::nullopt;
}

}  // namespace weir::inline v0::gateway
