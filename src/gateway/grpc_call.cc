#include "grpc_call.h"

#include <algorithm>

#include "weir/base/number_text.h"
#include "weir/experimental/http/grpc.h"

namespace weir::inline v0::gateway {
using http::FieldId;
namespace {

/// Clients count in 32 bits: a longer one could mean to them that they must never try again.
constexpr Duration kPushbackMax = std::chrono::hours(1);

}  // namespace

Result<std::optional<Duration>, GatewayRefusal> read_grpc_timeout(
    const http::HeaderList& headers) noexcept {
  std::optional<Duration> timeout;
  for (const http::HeaderView& field : headers) {
    if (field.id != FieldId::kGrpcTimeout) continue;
    const std::optional<Duration> one = http::parse_grpc_timeout(field.value);
    if (!one || timeout) return unexpected(GatewayRefusal::kBadGrpcTimeout);
    timeout = one;
  }
  return timeout;
}

std::optional<Duration> shorter(std::optional<Duration> timeout,
                                std::optional<Duration> overall) noexcept {
  if (!overall || *overall == Duration(0)) return timeout;
  return timeout ? std::min(*timeout, *overall) : overall;
}

bool is_grpc_answer(const upstream::ResponseHead& head) noexcept {
  return head.status == 200 &&
         http::is_grpc_content_type(head.headers.value(FieldId::kContentType));
}

bool has_grpc_status(const http::HeaderList& fields) noexcept {
  return http::parse_grpc_status(fields.value(FieldId::kGrpcStatus)).has_value();
}

LocalAnswer grpc_answer_without_status() noexcept {
  return {.status = 200,
          .reason = "no_grpc_status",
          .sentence = "the answer of the service ended without a grpc-status",
          .retry_after = {},
          .request_id = {},
          .grpc = static_cast<std::uint8_t>(http::GrpcStatus::kUnknown)};
}

LocalAnswer grpc_answer_for(const upstream::ResponseHead& head) noexcept {
  LocalAnswer answer{.status = static_cast<std::uint16_t>(head.status),
                     .reason = "not_grpc",
                     .sentence = "the answer of the upstream is not one of gRPC",
                     .retry_after = {},
                     .request_id = {},
                     .grpc = static_cast<std::uint8_t>(http::grpc_status_of_http(head.status))};
  if (const auto ms =
          parse_number<std::uint32_t>(head.headers.value(FieldId::kXWeirRetryAfterMs))) {
    answer.retry_after = std::min<Duration>(std::chrono::milliseconds(*ms), kPushbackMax);
  } else if (const auto seconds =
                 parse_number<std::uint32_t>(head.headers.value(FieldId::kRetryAfter))) {
    answer.retry_after = std::min<Duration>(std::chrono::seconds(*seconds), kPushbackMax);
  }
  return answer;
}

}  // namespace weir::inline v0::gateway
