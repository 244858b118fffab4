#pragma once

#include <optional>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"

#include "local_answer.h"
#include "upstream/response_head.h"

namespace weir::inline v0::gateway {

// What differs for gRPC calls.

/// The time that the client gives the call; nullopt: no limit. It is given at most once.
[[nodiscard]] Result<std::optional<Duration>, GatewayRefusal> read_grpc_timeout(
    const http::HeaderList& headers) noexcept;

/// The shorter of the client's timeout and the route's overall_timeout, if that is above 0: the
/// deadline of the method.
[[nodiscard]] std::optional<Duration> shorter(std::optional<Duration> timeout,
                                              std::optional<Duration> overall) noexcept;

/// Whether an answer is one of gRPC: 200 with its content type. Others come from something between
/// us and the service, and are translated.
[[nodiscard]] bool is_grpc_answer(const upstream::ResponseHead& head) noexcept;

/// Whether trailers, or the head of an answer without a body, tell how the call ended.
[[nodiscard]] bool has_grpc_status(const http::HeaderList& fields) noexcept;
/// The fields in which they do.
[[nodiscard]] constexpr bool says_grpc_status(http::FieldId id) noexcept {
  return id == http::FieldId::kGrpcStatus || id == http::FieldId::kGrpcMessage;
}

/// What a gRPC client is told if they do not: UNKNOWN, as its own library would assume.
[[nodiscard]] LocalAnswer grpc_answer_without_status() noexcept;

/// What a gRPC client is told instead of an answer that is not gRPC.
[[nodiscard]] LocalAnswer grpc_answer_for(const upstream::ResponseHead& head) noexcept;

}  // namespace weir::inline v0::gateway
