#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/experimental/client/client_config.h"
#include "weir/experimental/upstream/upstream_config.h"

#include "upstream/upstream_memory.h"

namespace weir::inline v0::inline client {

/// What a ClientConfig means for the upstream that the client sends to. The configuration must be
/// valid, except for that of endpoints in upstream_of().
///
/// Thread-safety: functions.
[[nodiscard]] Result<upstream::UpstreamConfig, ConfigError> upstream_of(const ClientConfig& config);
[[nodiscard]] std::string authority_of(const ClientConfig& config,
                                       const upstream::UpstreamConfig& upstream);
/// Of the requests in flight, those that one loop may have.
[[nodiscard]] std::uint32_t in_flight_per_loop(const ClientConfig& config) noexcept;
/// Ordinary requests that are in flight or queued.
[[nodiscard]] std::uint32_t ordinary_places(const ClientConfig& config) noexcept;
[[nodiscard]] upstream::UpstreamMemory::Shape memory_shape(
    const ClientConfig& config, const upstream::UpstreamConfig& upstream) noexcept;

}  // namespace weir::inline v0::inline client
