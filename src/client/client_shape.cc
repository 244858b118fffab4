#include "client_shape.h"

#include <algorithm>
#include <utility>

#include "weir/base/net_address.h"
#include "weir/experimental/config/upstream_url.h"

#include "request_text.h"
#include "upstream/upstream.h"

namespace weir::inline v0::inline client {
namespace {

constexpr std::uint32_t kSessionsMax = 64;      // HTTP/2 connections; each carries 100 requests
constexpr std::uint32_t kBlockBytesMin = 4096;  // of a body, of a region

}  // namespace

Result<upstream::UpstreamConfig, ConfigError> upstream_of(const ClientConfig& config) {
  auto made = config::upstream_from(config.endpoints);
  if (!made) {
    std::string all;
    for (const std::string& one : config.endpoints) all += (all.empty() ? "" : ", ") + one;
    return unexpected(ConfigError{.key = "endpoints", .value = all, .allowed = made.error()});
  }
  upstream::UpstreamConfig upstream = std::move(*made);
  upstream.name = "client";
  upstream.tls = config.tls;
  upstream.zone = config.zone;
  upstream.balance = config.balance;
  upstream.connect_timeout = config.connect_timeout;
  upstream.first_byte_timeout = std::chrono::hours(1);  // the deadline of each request ends it
  upstream.max_connections = config.max_connections;
  upstream.max_idle_connections = config.max_connections;
  upstream.connection_queue_max = config.max_in_flight + ClientConfig::kCriticalMax;
  upstream.hold_requests_max = config.max_in_flight + ClientConfig::kCriticalMax;
  upstream.retry_body_max = config.request_body_max;
  upstream.retry_budget_pct = config.hedge.budget_pct;
  upstream.retry_budget_tokens_max = config.hedge.max_budget_tokens;
  upstream.response_head_bytes_max = config.response_head_max;
  return upstream;
}

std::string authority_of(const ClientConfig& config, const upstream::UpstreamConfig& upstream) {
  if (!config.authority.empty()) return config.authority;
  const upstream::SourceSpec& first = upstream.endpoints.front();
  const bool named =
      first.kind == upstream::SourceKind::kAddress || first.kind == upstream::SourceKind::kDns;
  if (!named || first.address.kind == NetAddressKind::kUnix) return "localhost";
  std::string text = to_string(first.address);
  const std::string usual = upstream.tls_enabled ? ":443" : ":80";
  if (text.ends_with(usual)) text.resize(text.size() - usual.size());
  return text;
}

std::uint32_t in_flight_per_loop(const ClientConfig& config) noexcept {
  return std::max(1U, config.max_in_flight / config.loops);
}

std::uint32_t ordinary_places(const ClientConfig& config) noexcept {
  return config.max_in_flight + config.queue_max;
}

upstream::UpstreamMemory::Shape memory_shape(const ClientConfig& config,
                                             const upstream::UpstreamConfig& upstream) noexcept {
  constexpr std::uint32_t kCachedPerLoop = 4;
  const std::uint32_t requests = config.max_in_flight + ClientConfig::kCriticalMax;
  const std::size_t region = std::max(config.response_head_max, kBlockBytesMin);
  return {
      .heads = requests + kCachedPerLoop * config.loops,
      .head_bytes = config.request_head_max + head_room(authority_of(config, upstream)),
      .bodies = requests,
      .body_bytes = std::max(config.request_body_max, kBlockBytesMin),
      .regions = std::min(config.max_connections, requests) + ClientConfig::kCriticalMax,
      .region_bytes = region,
      .sessions = upstream.may_speak_http2() ? std::min(config.max_connections, kSessionsMax) : 0,
      .session_bytes = upstream::session_block_bytes(region),
      .loops = config.loops,
      .reserved = ClientConfig::kCriticalMax};
}

}  // namespace weir::inline v0::inline client
