#pragma once

#include <cstdint>
#include <string_view>

#include "weir/control/admission_request.h"

#include "upstream/failure.h"

namespace weir::inline v0::gateway {

/// What the failure of a call means to others: the status for the client, the gRPC code, what the
/// limiter learns, a sentence for people.
struct FailureMeaning {
  std::uint16_t http = 502;
  std::uint8_t grpc = 14;  // UNAVAILABLE
  Outcome outcome = Outcome::kError;
  std::string_view sentence;
};

/// Our own shortages (no_connection, no_buffer) are never overload of the service: a client that
/// causes them must not be able to pull the limit down.
[[nodiscard]] constexpr FailureMeaning meaning_of(upstream::UpstreamFailure failure) noexcept {
  using enum upstream::UpstreamFailure;
  constexpr std::uint8_t kDeadlineExceeded = 4;
  constexpr std::uint8_t kResourceExhausted = 8;
  constexpr std::uint8_t kUnimplemented = 12;
  constexpr std::uint8_t kUnavailable = 14;
  constexpr std::string_view kUnreachable = "the service cannot be reached";
  constexpr std::string_view kLate = "the service did not answer in time";
  constexpr std::string_view kImproper = "the service did not answer properly";
  constexpr std::string_view kTooLong = "the request took longer than it was allowed to";
  switch (failure) {
    case kNone:
      return {200, 0, Outcome::kOk, ""};
    case kNoEndpoint:
      return {503, kUnavailable, Outcome::kError, kUnreachable};
    case kNoConnection:
    case kNoBuffer:
      return {503, kResourceExhausted, Outcome::kError, kUnreachable};
    case kConnectRefused:
      return {503, kUnavailable, Outcome::kOverload, kUnreachable};
    case kConnectTimeout:
      return {504, kUnavailable, Outcome::kOverload, kLate};
    case kFirstByteTimeout:
    case kHung:
      return {504, kUnavailable, Outcome::kOverload, kLate};
    case kOverallTimeout:
      return {504, kDeadlineExceeded, Outcome::kOverload, kTooLong};
    case kDeadline:
      return {504, kDeadlineExceeded, Outcome::kIgnored, kTooLong};
    case kStalled:
      return {504, kUnavailable, Outcome::kError, kLate};
    case kRefusedStream:
    case kCalmDown:
      return {503, kUnavailable, Outcome::kOverload, "the service refused the request"};
    case kHttp2Required:
      return {501, kUnimplemented, Outcome::kError,
              "the service chose HTTP/1.1 by ALPN, and gRPC needs HTTP/2: let it offer h2"};
    case kConnectFailed:
    case kTlsFailed:
    case kClosedEarly:
    case kStreamReset:
    case kHttp11Required:
    case kBadResponse:
    case kTruncated:
      return {502, kUnavailable, Outcome::kError, kImproper};
  }
  return {};
}

}  // namespace weir::inline v0::gateway
