#pragma once

#include "weir/base/result.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/upstream/upstream_config.h"

#include "local_answer.h"
#include "route_table.h"

namespace weir::inline v0::gateway {

/// Whether it asks for a WebSocket connection: a GET in HTTP/1.1 with one Upgrade field that names
/// websocket, and nothing that frames a body; or an extended CONNECT (RFC 8441) for it. Any other
/// Upgrade is ignored, as RFC 9110 §7.8 allows, and the request is served without it.
[[nodiscard]] bool asks_for_websocket(const ServerRequest& request) noexcept;

/// An extended CONNECT as the GET that it is in HTTP/1.1 (RFC 8441 §5), which routes and admission
/// know; meta.protocol stays. Other requests are returned unchanged.
[[nodiscard]] ServerRequest as_in_http1(const ServerRequest& request) noexcept;

/// Whether the request is to become a tunnel on this route, or why it is refused.
///
///   request               route or upstream                 result
///   asks for no tunnel    any                               false
///   Upgrade: websocket    the route does not offer it       false: served without it
///   extended CONNECT      the same, or another protocol     501, as there is no other way to serve
///   it both                  the upstream speaks HTTP/2 only   501
///
/// `request` is that of as_in_http1().
[[nodiscard]] Result<bool, GatewayRefusal> judge_upgrade(
    const ServerRequest& request, const RouteConfig& route,
    const upstream::UpstreamConfig& upstream) noexcept;

}  // namespace weir::inline v0::gateway
