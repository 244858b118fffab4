#pragma once

#include "live/live_json.h"
#include "live/live_sampler.h"

namespace weir::inline v0::gateway {

// The members of a tick that have the name of a view; docs/design/live.md shows them.
// Thread-safety: the loop of the admin endpoint.

/// Refusals by reason and class over the last ten seconds, and who is refused.
[[nodiscard]] LiveJson refusals_view(const LiveSampler& sampler, const LiveUpstream& upstream);

/// The moves of the limit, and the knee.
[[nodiscard]] LiveJson limit_view(const LiveUpstream& upstream);

/// Pools and memory; `first`: also what the ceiling consists of, and how to lower it.
[[nodiscard]] LiveJson memory_view(const GatewayView& view, bool first);

/// The configuration in force.
[[nodiscard]] LiveJson config_view(const GatewayView& view);

}  // namespace weir::inline v0::gateway
