#include "websocket_request.h"

#include <algorithm>

#include "weir/experimental/http/field.h"

#include "http/h1/head_meaning.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::string_view kWebSocket = "websocket";

/// A repeated Upgrade, or a length, even of 0, is what only an attempt to confuse somebody has.
bool upgrades_in_http1(const ServerRequest& request) noexcept {
  const http::HeaderList& headers = *request.headers;
  return request.upgrade && request.method == http::Method::kGet &&
         request.version == HttpVersion::k11 && !headers.repeats(http::FieldId::kUpgrade) &&
         !headers.has(http::FieldId::kContentLength) &&
         !headers.has(http::FieldId::kTransferEncoding) &&
         http::h1::list_has(headers.value(http::FieldId::kUpgrade), kWebSocket);
}

bool offers_websocket(const RouteConfig& route) noexcept {
  if (!route.upgrade) return true;
  return std::find(route.upgrade->begin(), route.upgrade->end(), UpgradeProtocol::kWebSocket) !=
         route.upgrade->end();
}

}  // namespace

bool asks_for_websocket(const ServerRequest& request) noexcept {
  if (request.meta.protocol.empty()) return upgrades_in_http1(request);
  return request.upgrade && http::equals_ignore_case(request.meta.protocol, kWebSocket);
}

ServerRequest as_in_http1(const ServerRequest& request) noexcept {
  ServerRequest same = request;
  if (request.meta.protocol.empty()) return same;
  same.meta.method = "GET";
  same.method = http::Method::kGet;
  same.body_length = 0;
  return same;
}

Result<bool, GatewayRefusal> judge_upgrade(const ServerRequest& request, const RouteConfig& route,
                                           const upstream::UpstreamConfig& upstream) noexcept {
  const bool asks = asks_for_websocket(request);
  const bool connects = !request.meta.protocol.empty();
  if (!asks && !connects) return false;
  if (!asks || !offers_websocket(route)) {
    if (connects) return unexpected(GatewayRefusal::kProtocolNotOffered);
    return false;
  }
  if (upstream.protocol == upstream::Protocol::kHttp2) {
    return unexpected(GatewayRefusal::kUpgradeNeedsHttp1);
  }
  return true;
}

}  // namespace weir::inline v0::gateway
