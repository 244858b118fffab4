#pragma once

#include <cstdint>
#include <string>

#include "weir/experimental/config/weir_config.h"

namespace weir::inline v0::gateway {

/// What upstreams need of the memory that is laid out at start, or how much of it there is.
struct UpstreamRoom {
  std::uint32_t upstreams = 0;        // scopes and counters
  std::uint32_t connections = 0;      // the sum of max_connections
  std::uint32_t tls_connections = 0;  // of them, with TLS
  std::uint32_t sessions = 0;         // HTTP/2 connections that have a session at the same time
  std::uint32_t region_bytes = 0;     // the longest response head

  bool operator==(const UpstreamRoom&) const = default;

  /// What one upstream needs.
  [[nodiscard]] static UpstreamRoom of(const upstream::UpstreamConfig& upstream) noexcept;
  /// What the upstreams of the configuration need and what [reload] adds to it.
  [[nodiscard]] static UpstreamRoom laid_out(const config::Config& config) noexcept;
  UpstreamRoom& operator+=(const UpstreamRoom& more) noexcept;
};

/// Why there is not enough room for what is needed, with the option and both numbers; empty if
/// there is. `finishing` names an upstream that was removed and still uses room; empty: there is
/// none.
[[nodiscard]] std::string room_objection(const UpstreamRoom& needed, const UpstreamRoom& laid_out,
                                         const config::Config& config,
                                         const std::string& finishing);

}  // namespace weir::inline v0::gateway
