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

/// Our own shortage: another endpoint would not help.
[[nodiscard]] inline bool is_own_shortage(UpstreamFailure failure) noexcept {
  return failure == UpstreamFailure::kNoConnection || failure == UpstreamFailure::kNoBuffer;
}

[[nodiscard]] inline policy::FailedAttempt facts_of(const StreamFailure& failure) noexcept {
  return {.failure = kind_of(failure.failure),
          .processed = failure.processed,
          .written = failure.written,
          .reused = failure.reused,
          .pushback = {}};
}

}  // namespace weir::inline v0::upstream
