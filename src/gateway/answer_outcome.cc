#include "answer_outcome.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "weir/base/ascii.h"
#include "weir/experimental/http/grpc.h"

namespace weir::inline v0::gateway {
namespace {

using http::FieldId;
using http::GrpcStatus;

bool is_explained(const http::HeaderList& fields) noexcept {
  return fields.has(FieldId::kXWeirReason) || fields.has(FieldId::kRetryAfter) ||
         fields.has(FieldId::kGrpcRetryPushbackMs);
}

bool names_overload(std::string_view message) noexcept {
  constexpr std::string_view kWord = "overload";
  const auto same = [](char a, char b) { return to_lower(a) == b; };
  return std::search(message.begin(), message.end(), kWord.begin(), kWord.end(), same) !=
         message.end();
}

}  // namespace

Outcome outcome_of(const upstream::ResponseHead& head) noexcept {
  const bool refused = head.status == 503 || head.status == 429;
  if (refused && is_explained(head.headers)) return Outcome::kIgnored;
  if (head.status == 503) return Outcome::kOverload;
  return head.status >= 500 ? Outcome::kError : Outcome::kOk;
}

Outcome outcome_of_grpc(const http::HeaderList& fields) noexcept {
  const std::optional<std::uint8_t> code =
      http::parse_grpc_status(fields.value(FieldId::kGrpcStatus));
  if (!code) return Outcome::kError;
  switch (static_cast<GrpcStatus>(*code)) {
    case GrpcStatus::kUnavailable:
      return is_explained(fields) ? Outcome::kIgnored : Outcome::kOverload;
    case GrpcStatus::kResourceExhausted:
      // Also the answer to a client's own quota, or to a message that is too long.
      if (is_explained(fields)) return Outcome::kIgnored;
      return names_overload(fields.value(FieldId::kGrpcMessage)) ? Outcome::kOverload
                                                                 : Outcome::kOk;
    case GrpcStatus::kCancelled:
    case GrpcStatus::kDeadlineExceeded:
      return Outcome::kIgnored;
    case GrpcStatus::kInternal:
    case GrpcStatus::kUnknown:
      return Outcome::kError;
    default:
      return Outcome::kOk;
  }
}

}  // namespace weir::inline v0::gateway
