#pragma once

#include <string>

#include "weir/base/time.h"

#include "gateway_view.h"

namespace weir::inline v0::gateway {

/// The page /metrics: all metric families of a gateway, in the Prometheus text format.
[[nodiscard]] std::string metrics_page(const GatewayView& view, TimePoint now);

}  // namespace weir::inline v0::gateway
