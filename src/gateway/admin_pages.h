#pragma once

#include "weir/base/time.h"

#include "admin_server.h"
#include "gateway_view.h"

namespace weir::inline v0::gateway {

/// The pages of the admin endpoint; README of the operator: docs/guide/gateway.md.
///
///   /metrics /healthz /readyz /stats /pools /actors?top= /endpoints /config /explain?…
///
/// None of them changes anything, none shows a secret.
[[nodiscard]] AdminPage admin_page(const GatewayView& view, const AdminRequest& request,
                                   TimePoint now);

}  // namespace weir::inline v0::gateway
