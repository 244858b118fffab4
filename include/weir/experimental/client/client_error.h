#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/time.h"

namespace weir::inline v0::inline client {

// The one list of errors: enumerator, stable name, a sentence for people.
// clang-format off
#define WEIR_CLIENT_ERRORS(X)                                                                     \
  X(kBadRequest, "bad_request",                                                                   \
    "the method, the path or a header cannot be sent, or is one that the client writes itself")   \
  X(kHeadTooLarge, "head_too_large", "method, path and headers are above request_head_max")       \
  X(kBodyTooLarge, "body_too_large", "the body is above request_body_max")                        \
  X(kQueueFull, "queue_full", "max_in_flight requests are under way, and queue_max wait")         \
  X(kCriticalFull, "critical_full", "all places for critical requests are taken")                 \
  X(kNoConnection, "no_connection", "all of max_connections are in use")                          \
  X(kNoBuffer, "no_buffer", "a pool of the client is used up")                                    \
  X(kClosed, "closed", "the client was closed")                                                   \
  X(kDeadline, "deadline", "the time of the request is over")                                     \
  X(kNoEndpoint, "no_endpoint", "no endpoint can be used")                                        \
  X(kConnectFailed, "connect_failed", "no connection could be made, or its TLS handshake failed") \
  X(kTimeout, "timeout", "an endpoint did not answer, or stopped in the middle")                  \
  X(kConnectionLost, "connection_lost", "the connection ended before the answer was complete")    \
  X(kBadResponse, "bad_response", "the answer was not valid HTTP, or its head too large")         \
  X(kResponseTooLarge, "response_too_large", "the body of the answer is above response_body_max")
// clang-format on

/// Why there is no response.
enum class ClientErrorKind : std::uint8_t {
#define WEIR_X(enumerator, ...) enumerator,
  WEIR_CLIENT_ERRORS(WEIR_X)
#undef WEIR_X
};

inline constexpr std::array kClientErrorNames = {
#define WEIR_X(enumerator, name, sentence) std::string_view(name),
    WEIR_CLIENT_ERRORS(WEIR_X)
#undef WEIR_X
};
inline constexpr std::array kClientErrorSentences = {
#define WEIR_X(enumerator, name, sentence) std::string_view(sentence),
    WEIR_CLIENT_ERRORS(WEIR_X)
#undef WEIR_X
};

[[nodiscard]] constexpr std::string_view name_of(ClientErrorKind kind) noexcept {
  return kClientErrorNames[static_cast<std::size_t>(kind)];
}

/// Why a request has no response, and when to try again.
struct ClientError {
  ClientErrorKind kind = ClientErrorKind::kBadRequest;
  Duration retry_after{};  // for a bound of the client: send the next request after this time

  /// A sentence for people, without the details of the request.
  [[nodiscard]] constexpr std::string_view text() const noexcept {
    return kClientErrorSentences[static_cast<std::size_t>(kind)];
  }
};

}  // namespace weir::inline v0::inline client
