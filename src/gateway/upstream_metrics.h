#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "weir/base/time.h"

#include "metrics/metric.h"
#include "served_upstream.h"
#include "upstream/endpoint_set.h"

namespace weir::inline v0::gateway {

/// What a scrape has read of the upstreams.
struct UpstreamReadings {
  const UpstreamSet& upstreams;
  std::span<const std::shared_ptr<const upstream::EndpointSet>> sets;  // of each upstream
  TimePoint now{};
};

/// Writes the metrics of retries, hedges, endpoints and their queues.
void write_upstream_metrics(metrics::MetricsPage& page, const UpstreamReadings& readings);

struct ConnectionCounts {
  std::uint64_t open = 0;
  std::uint64_t idle = 0;
  std::uint64_t connecting = 0;
};
struct ConnectionsInState {
  std::string_view state;
  std::uint64_t connections = 0;
};
[[nodiscard]] inline std::array<ConnectionsInState, 3> by_state(
    const ConnectionCounts& now) noexcept {
  const std::uint64_t used = now.open - std::min(now.open, now.idle + now.connecting);
  return {ConnectionsInState{"idle", now.idle}, {"active", used}, {"connecting", now.connecting}};
}

}  // namespace weir::inline v0::gateway
