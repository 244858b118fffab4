#pragma once

#include <string>

#include "weir/config/server_config.h"
#include "weir/server/stats.h"

namespace weir::inline v0 {

/// The statistics as one JSON object: pools with used, peak, capacity, exhausted; counters; closes
/// and refusals by reason; the ceiling. It allocates: for an admin endpoint, not for requests.
[[nodiscard]] std::string stats_json(const ServerStats& stats, const ServerConfig& config);

}  // namespace weir::inline v0
