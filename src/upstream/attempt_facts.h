#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "weir/base/time.h"

#include "policy/send_again.h"
#include "upstream/client_stream.h"
#include "upstream/failure.h"
#include "upstream/response_head.h"

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

[[nodiscard]] inline std::optional<Duration> number_of(std::string_view text,
                                                       Duration unit) noexcept {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return unit * value;
}

/// What the answer says about another attempt. A Retry-After that is a date is left to the client.
[[nodiscard]] inline std::optional<policy::Pushback> pushback_of(
    const ResponseHead& head) noexcept {
  const auto weir = number_of(head.headers.value(http::FieldId::kXWeirRetryAfterMs),
                              std::chrono::milliseconds(1));
  if (weir) return policy::Pushback{.stop = false, .wait = *weir};
  const std::string_view text = head.headers.value(http::FieldId::kRetryAfter);
  if (text.empty()) return std::nullopt;
  const auto seconds = number_of(text, std::chrono::seconds(1));
  if (!seconds) return policy::Pushback{.stop = true, .wait = {}};
  return policy::Pushback{.stop = false, .wait = *seconds};
}

[[nodiscard]] inline policy::FailedAttempt facts_of(const StreamFailure& failure) noexcept {
  return {.failure = kind_of(failure.failure),
          .processed = failure.processed,
          .written = failure.written,
          .reused = failure.reused,
          .pushback = {}};
}

}  // namespace weir::inline v0::upstream
