#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/control/admission_request.h"

namespace weir::inline v0::upstream {

// The one list of failures of an exchange: enumerator, stable name, status for the client, outcome
// for the limiter, a sentence for people.
// clang-format off
#define WEIR_UPSTREAM_FAILURES(X)                                                                 \
  X(kNone, "none", 200, kOk, "")                                                                  \
  X(kNoEndpoint, "no_endpoint", 503, kError, "the service cannot be reached")                     \
  X(kNoConnection, "no_connection", 503, kOverload, "the service cannot be reached")              \
  X(kNoBuffer, "no_buffer", 503, kError, "the service cannot be reached")                         \
  X(kConnectRefused, "connect_refused", 503, kOverload, "the service cannot be reached")          \
  X(kConnectTimeout, "connect_timeout", 504, kOverload, "the service did not answer in time")     \
  X(kConnectFailed, "connect_failed", 502, kError, "the service did not answer properly")         \
  X(kClosedEarly, "closed_early", 502, kError, "the service did not answer properly")             \
  X(kFirstByteTimeout, "first_byte_timeout", 504, kOverload,                                      \
    "the service did not answer in time")                                                         \
  X(kOverallTimeout, "overall_timeout", 504, kOverload,                                           \
    "the request took longer than it was allowed to")                                             \
  X(kDeadline, "deadline", 504, kIgnored, "the request took longer than it was allowed to")       \
  X(kBadResponse, "bad_response", 502, kError, "the service did not answer properly")             \
  X(kTruncated, "truncated", 502, kError, "the service did not answer properly")                  \
  X(kStalled, "stalled", 504, kError, "the service did not answer in time")
// clang-format on

enum class UpstreamFailure : std::uint8_t {
#define WEIR_X(enumerator, ...) enumerator,
  WEIR_UPSTREAM_FAILURES(WEIR_X)
#undef WEIR_X
};

struct UpstreamFailureFacts {
  std::string_view name;
  std::uint16_t http = 0;
  Outcome outcome = Outcome::kError;
  std::string_view sentence;
};

inline constexpr std::array kUpstreamFailureFacts = {
#define WEIR_X(enumerator, name, http, outcome, sentence) \
  UpstreamFailureFacts{name, http, Outcome::outcome, sentence},
    WEIR_UPSTREAM_FAILURES(WEIR_X)
#undef WEIR_X
};
inline constexpr std::size_t kUpstreamFailureCount = kUpstreamFailureFacts.size();

[[nodiscard]] constexpr std::size_t index_of(UpstreamFailure f) noexcept {
  return static_cast<std::size_t>(f);
}
[[nodiscard]] constexpr const UpstreamFailureFacts& facts_of(UpstreamFailure f) noexcept {
  return kUpstreamFailureFacts[index_of(f)];
}
[[nodiscard]] constexpr std::string_view name_of(UpstreamFailure f) noexcept {
  return facts_of(f).name;
}

}  // namespace weir::inline v0::upstream
