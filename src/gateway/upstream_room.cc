#include "upstream_room.h"

#include <algorithm>

namespace weir::inline v0::gateway {
namespace {

constexpr std::uint32_t kSessionsPerUpstream = 64;  // each carries up to 100 requests
constexpr std::uint32_t kRegionBytesMin = 4096;

}  // namespace

UpstreamRoom UpstreamRoom::of(const upstream::UpstreamConfig& upstream) noexcept {
  return {.upstreams = 1,
          .connections = upstream.max_connections,
          .tls_connections = upstream.tls_enabled ? upstream.max_connections : 0,
          .sessions = upstream.may_speak_http2()
                          ? std::min(upstream.max_connections, kSessionsPerUpstream)
                          : 0,
          .region_bytes = std::max(upstream.response_head_bytes_max, kRegionBytesMin)};
}

UpstreamRoom& UpstreamRoom::operator+=(const UpstreamRoom& more) noexcept {
  upstreams += more.upstreams;
  connections += more.connections;
  tls_connections += more.tls_connections;
  sessions += more.sessions;
  region_bytes = std::max(region_bytes, more.region_bytes);
  return *this;
}

// Spare sessions have no option of their own: as many as two upstreams can use, so that one with
// HTTP/2 can take the place of another, or as all spare ones can if connections_spare is set.
UpstreamRoom UpstreamRoom::laid_out(const config::Config& config) noexcept {
  UpstreamRoom room{.region_bytes = kRegionBytesMin};
  UpstreamRoom largest;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    const UpstreamRoom one = of(upstream);
    room += one;
    largest.connections = std::max(largest.connections, one.connections);
    largest.tls_connections = std::max(largest.tls_connections, one.tls_connections);
  }
  const ReloadConfig& spare = config.reload;
  if (spare.upstreams_spare == 0) return room;
  const auto wanted = [](std::uint32_t option, std::uint32_t otherwise) {
    return option > 0 ? option : otherwise;
  };
  const std::uint32_t connections = wanted(spare.connections_spare, largest.connections);
  const std::uint32_t users = spare.connections_spare > 0 ? spare.upstreams_spare : 2;
  room += {.upstreams = spare.upstreams_spare,
           .connections = connections,
           .tls_connections = wanted(spare.tls_connections_spare, largest.tls_connections)};
  room.sessions = std::min(room.connections, room.sessions + kSessionsPerUpstream * users);
  return room;
}

std::string room_objection(const UpstreamRoom& needed, const UpstreamRoom& laid_out,
                           const config::Config& config, const std::string& finishing) {
  const auto short_of = [&](std::string_view option, std::uint32_t value, std::string_view what,
                            std::uint32_t have, std::uint32_t want) {
    std::string text = "reload." + std::string(option) + " = " + std::to_string(value) +
                       ": there is room for " + std::to_string(have) + " " + std::string(what) +
                       ", laid out at start, and " + std::to_string(want) + " are needed";
    if (!finishing.empty()) {
      text += ", those included that upstream " + finishing +
              " uses until its requests have finished; try again then";
    }
    return text + "; a restart makes more room";
  };
  const ReloadConfig& reload = config.reload;
  if (needed.upstreams > laid_out.upstreams) {
    return short_of("upstreams_spare", reload.upstreams_spare, "upstreams", laid_out.upstreams,
                    needed.upstreams);
  }
  if (needed.connections > laid_out.connections) {
    return short_of("connections_spare", reload.connections_spare,
                    "connections (the sum of max_connections)", laid_out.connections,
                    needed.connections);
  }
  if (needed.tls_connections > laid_out.tls_connections) {
    return short_of("tls_connections_spare", reload.tls_connections_spare,
                    "connections with TLS (the sum of max_connections)", laid_out.tls_connections,
                    needed.tls_connections);
  }
  if (needed.sessions > laid_out.sessions) {
    return short_of("connections_spare", reload.connections_spare, "HTTP/2 connections",
                    laid_out.sessions, needed.sessions);
  }
  if (needed.region_bytes > laid_out.region_bytes) {
    return "response_head_bytes_max = " + std::to_string(needed.region_bytes) +
           ": the largest that there is room for, laid out at start, is " +
           std::to_string(laid_out.region_bytes) + "; a restart makes more room";
  }
  return {};
}

}  // namespace weir::inline v0::gateway
