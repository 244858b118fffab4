#include "weir/experimental/http/grpc.h"

#include <algorithm>
#include <charconv>

#include "weir/base/number_text.h"
#include "weir/experimental/http/field.h"

namespace weir::inline v0::http {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kTimeoutDigitsMax = 8;

/// Zero: not a unit.
Duration unit_of(char unit) noexcept {
  switch (unit) {
    case 'H':
      return std::chrono::hours(1);
    case 'M':
      return std::chrono::minutes(1);
    case 'S':
      return std::chrono::seconds(1);
    case 'm':
      return milliseconds(1);
    case 'u':
      return microseconds(1);
    case 'n':
      return Duration(1);
    default:
      return Duration(0);
  }
}

}  // namespace

bool is_grpc_content_type(std::string_view value) noexcept {
  constexpr std::string_view kType = "application/grpc";
  if (!equals_ignore_case(value.substr(0, kType.size()), kType)) return false;
  value.remove_prefix(kType.size());
  return value.empty() || value[0] == '+' || value[0] == ';' || value[0] == ' ' || value[0] == '\t';
}

std::optional<Duration> parse_grpc_timeout(std::string_view value) noexcept {
  if (value.size() < 2 || value.size() > kTimeoutDigitsMax + 1) return std::nullopt;
  const Duration unit = unit_of(value.back());
  value.remove_suffix(1);
  const std::optional<std::uint32_t> count = parse_number<std::uint32_t>(value);
  if (unit == Duration(0) || !count) return std::nullopt;
  // Compared before it is multiplied: 99999999 hours do not fit.
  return *count > kGrpcTimeoutMax / unit ? kGrpcTimeoutMax : *count * unit;
}

GrpcTimeoutText::GrpcTimeoutText(Duration left) noexcept {
  left = std::clamp(left, Duration(0), kGrpcTimeoutMax);
  const bool fine = left < milliseconds(10);
  const std::int64_t count =
      fine ? duration_cast<microseconds>(left).count() : duration_cast<milliseconds>(left).count();
  char* end = std::to_chars(text_.data(), text_.data() + text_.size(), count).ptr;
  *end++ = fine ? 'u' : 'm';
  size_ = static_cast<std::size_t>(end - text_.data());
}

std::optional<std::uint8_t> parse_grpc_status(std::string_view value) noexcept {
  return value.size() <= 2 ? parse_number<std::uint8_t>(value) : std::nullopt;
}

GrpcStatus grpc_status_of_http(unsigned status) noexcept {
  switch (status) {
    case 400:
    case 431:
      return GrpcStatus::kInternal;
    case 401:
      return GrpcStatus::kUnauthenticated;
    case 403:
      return GrpcStatus::kPermissionDenied;
    case 404:
      return GrpcStatus::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return GrpcStatus::kUnavailable;
    default:
      return GrpcStatus::kUnknown;
  }
}

}  // namespace weir::inline v0::http
