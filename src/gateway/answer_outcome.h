#pragma once

#include "weir/control/admission_request.h"
#include "weir/experimental/http/header_view.h"

#include "upstream/response_head.h"

namespace weir::inline v0::gateway {

// What the limiter learns from answers. A refusal that its sender explains (a Weir behind us, or a
// time to wait) is ignored: that one protects itself already, so our limit must not fall too.

[[nodiscard]] Outcome outcome_of(const upstream::ResponseHead& head) noexcept;

/// Of a gRPC call, whose HTTP status is always 200. `fields` are its trailers, or the head of an
/// answer without a body.
[[nodiscard]] Outcome outcome_of_grpc(const http::HeaderList& fields) noexcept;

}  // namespace weir::inline v0::gateway
