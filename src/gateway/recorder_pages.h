#pragma once

#include <string_view>

#include "weir/base/time.h"

#include "admin_server.h"
#include "core.h"

namespace weir::inline v0::gateway {

/// /explain?id=: how the request with that id was decided, with the numbers of that moment.
[[nodiscard]] AdminPage decided_page(const GatewayCore& core, std::string_view query,
                                     TimePoint now);

/// /recording?seconds=: the decision recorder as a file for `weir replay`. At most
/// DecisionRecorder::kBytes and a header.
[[nodiscard]] AdminPage recording_page(const GatewayCore& core, std::string_view query,
                                       TimePoint now);

}  // namespace weir::inline v0::gateway
