#pragma once

#include <string>

#include "weir/base/time.h"

#include "gateway_view.h"

namespace weir::inline v0::gateway {

/// The page /metrics: all families of the table that a gateway has, in Prometheus' text format.
[[nodiscard]] std::string metrics_page(const GatewayView& view, TimePoint now);

}  // namespace weir::inline v0::gateway
