#pragma once

#include <cstdint>
#include <optional>

#include "weir/experimental/http/grpc.h"

#include "policy/hedge_decision.h"
#include "upstream/pushback.h"
#include "upstream/response_head.h"

namespace weir::inline v0::upstream {

// What an answer means for the other attempts of its call. A gRPC answer has HTTP status 200: one
// without a message (Trailers-Only) says in its head how the call ended. Of one with messages only
// the head counts, as with HTTP: it is good.

/// The status in the head; nullopt: the answer is not gRPC, or its status comes in trailers.
[[nodiscard]] inline std::optional<std::uint8_t> grpc_status_in(const ResponseHead& head) noexcept {
  if (head.status != 200 || !head.headers.has(http::FieldId::kGrpcStatus)) return std::nullopt;
  if (!http::is_grpc_content_type(head.headers.value(http::FieldId::kContentType))) {
    return std::nullopt;
  }
  constexpr auto kUnknown = static_cast<std::uint8_t>(http::GrpcStatus::kUnknown);
  return http::parse_grpc_status(head.headers.value(http::FieldId::kGrpcStatus)).value_or(kUnknown);
}

[[nodiscard]] inline policy::AnswerKind answer_kind_of(const ResponseHead& head) noexcept {
  const std::optional<std::uint8_t> grpc = grpc_status_in(head);
  if (!grpc) return policy::answer_kind(head.status);
  return policy::grpc_answer_kind(*grpc, pushback_of(head).has_value());
}

/// It asks its caller for fewer requests: another endpoint would not help.
[[nodiscard]] inline bool is_about_the_caller(const ResponseHead& head) noexcept {
  constexpr auto kExhausted = static_cast<std::uint8_t>(http::GrpcStatus::kResourceExhausted);
  return head.status == 429 || grpc_status_in(head) == kExhausted;
}

/// The endpoint could not serve it: 502, 503, 504 or UNAVAILABLE.
[[nodiscard]] inline bool is_unavailable(const ResponseHead& head) noexcept {
  return answer_kind_of(head) == policy::AnswerKind::kTryLater && !is_about_the_caller(head);
}

}  // namespace weir::inline v0::upstream
