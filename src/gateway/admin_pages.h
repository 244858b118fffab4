#pragma once

#include <string>

#include "weir/base/time.h"

#include "admin_server.h"
#include "gateway_view.h"

namespace weir::inline v0::gateway {

/// The pages of the admin endpoint; docs/guide/gateway.md describes them.
///
///   /metrics /healthz /readyz /stats /pools /actors?top= /endpoints /config /explain?…
///   /explain?id= /recording?seconds=
///
/// No page changes anything or shows a secret.
[[nodiscard]] AdminPage admin_page(const GatewayView& view, const AdminRequest& request,
                                   TimePoint now);

/// The page /metrics: all metric families of a gateway, in the Prometheus text format.
[[nodiscard]] std::string metrics_page(const GatewayView& view, TimePoint now);

}  // namespace weir::inline v0::gateway
