#pragma once

#include <grpcpp/support/status_code_enum.h>

#include "weir/control/admission_request.h"

#include "private_members.h"

namespace weir::inline v0::grpc {

/// How a call that ended with this status counts for the limiter.
///   OK                                   ok
///   UNAVAILABLE, without a reason        overload: the service says so itself
///   RESOURCE_EXHAUSTED with a pushback   overload; without one it is also the answer to a message
///                                        that is too long or to a client's own quota: error
///   either of them with x-weir-reason    ignored: a Weir behind this service refused the call, and
///                                        the handler passed that on; it is that one's limit
///   CANCELLED                            ignored
///   anything else                        error
/// A call whose client has gone or whose deadline has passed is ignored: the caller asks for that
/// first, unless the status is OK.
[[nodiscard]] Outcome outcome_of(::grpc::StatusCode code, const Trailers& trailers) noexcept;

}  // namespace weir::inline v0::grpc
