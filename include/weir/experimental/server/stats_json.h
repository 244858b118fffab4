#pragma once

#include <string>

#include "weir/experimental/server/server_config.h"
#include "weir/experimental/server/stats.h"

namespace weir::inline v0::inline server {

/// The statistics as one JSON object: pools with used, peak, capacity, exhausted; counters; closes
/// and refusals by reason; the ceiling. It allocates: use it for an admin page, not for requests.
[[nodiscard]] std::string stats_json(const ServerStats& stats, const ServerConfig& config);

}  // namespace weir::inline v0::inline server
