#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/stream.h"

#include "local_answer.h"
#include "route_table.h"

namespace weir::inline v0::gateway {

/// What send_route_answer() may use during the call.
struct AnswerSpace {
  std::string_view request_id{};
  std::span<char> text;             // for Location
  std::span<ResponseField> fields;  // at least kRouteAnswerFields
};
inline constexpr std::size_t kRouteAnswerFields = RouteRewrite::kFieldsMax + 3;

/// Sends the answer that a route gives itself: a redirect, or a fixed status and text. Returns its
/// status; if no write buffer is free, that of the server's fixed 503, which needs none.
/// Refused: the target does not fit.
[[nodiscard]] Result<std::uint16_t, GatewayRefusal> send_route_answer(ServerStream& stream,
                                                                      const ServerRequest& request,
                                                                      const Route& route,
                                                                      const AnswerSpace& space);

}  // namespace weir::inline v0::gateway
