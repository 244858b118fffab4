#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::upstream {

// The one list of failures of a call or an attempt: enumerator, stable name. They are facts; what a
// client is told and what the limiter learns is decided where the call was made.
// clang-format off
#define WEIR_UPSTREAM_FAILURES(X)                                                                 \
  X(kNone, "none")                                                                                \
  X(kNoEndpoint, "no_endpoint")                  /* none is available, or none came in time */    \
  X(kNoConnection, "no_connection")              /* our own bound on connections is reached */    \
  X(kNoBuffer, "no_buffer")                      /* our own memory is used up */                  \
  X(kConnectRefused, "connect_refused")                                                           \
  X(kConnectTimeout, "connect_timeout")                                                           \
  X(kConnectFailed, "connect_failed")                                                             \
  X(kTlsFailed, "tls_failed")                    /* handshake or certificate */                   \
  X(kClosedEarly, "closed_early")                /* the connection ended before any answer */     \
  X(kRefusedStream, "refused_stream")            /* HTTP/2: certainly not processed */            \
  X(kStreamReset, "stream_reset")                /* HTTP/2: reset before the answer's end */      \
  X(kCalmDown, "enhance_your_calm")              /* HTTP/2: it finds that we ask too much */       \
  X(kHttp11Required, "http_1_1_required")                                                         \
  X(kHttp2Required, "http_2_required")           /* gRPC, and ALPN chose HTTP/1.1 */              \
  X(kFirstByteTimeout, "first_byte_timeout")                                                      \
  X(kOverallTimeout, "overall_timeout")                                                           \
  X(kDeadline, "deadline")                       /* set by the caller */                          \
  X(kBadResponse, "bad_response")                                                                 \
  X(kTruncated, "truncated")                     /* the connection ended within the answer */     \
  X(kStalled, "stalled")                         /* a body without progress */                    \
  X(kHung, "hung")                               /* its endpoint is silent; see policy/silence */
// clang-format on

enum class UpstreamFailure : std::uint8_t {
#define WEIR_X(enumerator, ...) enumerator,
  WEIR_UPSTREAM_FAILURES(WEIR_X)
#undef WEIR_X
};

inline constexpr std::array kUpstreamFailureNames = {
#define WEIR_X(enumerator, name) std::string_view(name),
    WEIR_UPSTREAM_FAILURES(WEIR_X)
#undef WEIR_X
};
inline constexpr std::size_t kUpstreamFailureCount = kUpstreamFailureNames.size();

[[nodiscard]] constexpr std::size_t index_of(UpstreamFailure f) noexcept {
  return static_cast<std::size_t>(f);
}
[[nodiscard]] constexpr std::string_view name_of(UpstreamFailure f) noexcept {
  return kUpstreamFailureNames[index_of(f)];
}

}  // namespace weir::inline v0::upstream
