#pragma once

#include "policy/send_again.h"
#include "upstream/client_stream.h"
#include "upstream/failure.h"
#include "upstream/pushback.h"

// What policy::may_send_again() is told about an attempt.

namespace weir::inline v0::upstream {

[[nodiscard]] inline policy::AttemptFailure kind_of(UpstreamFailure failure) noexcept {
  switch (failure) {
    case UpstreamFailure::kRefusedStream:
      return policy::AttemptFailure::kRefusedStream;
    case UpstreamFailure::kClosedEarly:
    case UpstreamFailure::kTruncated:
      return policy::AttemptFailure::kConnectionLost;
    case UpstreamFailure::kStreamReset:
      return policy::AttemptFailure::kStreamReset;
    case UpstreamFailure::kCalmDown:
      return policy::AttemptFailure::kEnhanceYourCalm;
    case UpstreamFailure::kHttp11Required:
      return policy::AttemptFailure::kHttp11Required;
    case UpstreamFailure::kFirstByteTimeout:
    case UpstreamFailure::kStalled:
      return policy::AttemptFailure::kTimeout;
    case UpstreamFailure::kHung:
      return policy::AttemptFailure::kSilent;
    case UpstreamFailure::kBadResponse:
      return policy::AttemptFailure::kBadResponse;
    default:
      return policy::AttemptFailure::kConnectFailed;
  }
}

/// Another endpoint would not help: our own shortage, or endpoints that lack a protocol.
[[nodiscard]] inline bool is_final(UpstreamFailure failure) noexcept {
  return failure == UpstreamFailure::kNoConnection || failure == UpstreamFailure::kNoBuffer ||
         failure == UpstreamFailure::kHttp2Required;
}

[[nodiscard]] inline policy::FailedAttempt facts_of(const StreamFailure& failure) noexcept {
  return {.failure = kind_of(failure.failure),
          .processed = failure.processed,
          .written = failure.written,
          .reused = failure.reused,
          .pushback = {}};
}

}  // namespace weir::inline v0::upstream
