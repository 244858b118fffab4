#pragma once

#include <cstdint>
#include <string_view>

namespace weir::inline v0::http {

// Every field name that Weir reads, writes or removes: enumerator and name in lower case.
#define WEIR_FIELDS(X)                              \
  /* message framing and routing */                 \
  X(kHost, "host")                                  \
  X(kContentLength, "content-length")               \
  X(kTransferEncoding, "transfer-encoding")         \
  X(kConnection, "connection")                      \
  X(kKeepAlive, "keep-alive")                       \
  X(kProxyConnection, "proxy-connection")           \
  X(kUpgrade, "upgrade")                            \
  X(kTe, "te")                                      \
  X(kTrailer, "trailer")                            \
  X(kExpect, "expect")                              \
  X(kHttp2Settings, "http2-settings")               \
  X(kMaxForwards, "max-forwards")                   \
  /* content */                                     \
  X(kContentType, "content-type")                   \
  X(kContentEncoding, "content-encoding")           \
  X(kContentRange, "content-range")                 \
  X(kRange, "range")                                \
  X(kCacheControl, "cache-control")                 \
  X(kDate, "date")                                  \
  X(kServer, "server")                              \
  X(kRetryAfter, "retry-after")                     \
  X(kLocation, "location")                          \
  X(kUserAgent, "user-agent")                       \
  X(kAccept, "accept")                              \
  X(kAcceptEncoding, "accept-encoding")             \
  X(kVary, "vary")                                  \
  X(kAge, "age")                                    \
  /* identity */                                    \
  X(kAuthorization, "authorization")                \
  X(kProxyAuthorization, "proxy-authorization")     \
  X(kProxyAuthenticate, "proxy-authenticate")       \
  X(kWwwAuthenticate, "www-authenticate")           \
  X(kCookie, "cookie")                              \
  X(kSetCookie, "set-cookie")                       \
  X(kXApiKey, "x-api-key")                          \
  /* the path of a request through proxies */       \
  X(kForwarded, "forwarded")                        \
  X(kVia, "via")                                    \
  X(kXForwardedFor, "x-forwarded-for")              \
  X(kXForwardedHost, "x-forwarded-host")            \
  X(kXForwardedProto, "x-forwarded-proto")          \
  X(kXRealIp, "x-real-ip")                          \
  X(kXRequestId, "x-request-id")                    \
  X(kTraceparent, "traceparent")                    \
  X(kTracestate, "tracestate")                      \
  X(kBaggage, "baggage")                            \
  /* gRPC */                                        \
  X(kGrpcTimeout, "grpc-timeout")                   \
  X(kGrpcStatus, "grpc-status")                     \
  X(kGrpcMessage, "grpc-message")                   \
  X(kGrpcRetryPushbackMs, "grpc-retry-pushback-ms") \
  /* Weir */                                        \
  X(kXWeirPriority, "x-weir-priority")              \
  X(kXWeirPeer, "x-weir-peer")                      \
  X(kXWeirActor, "x-weir-actor")                    \
  X(kXWeirAttempt, "x-weir-attempt")                \
  X(kXWeirDeadlineMs, "x-weir-deadline-ms")         \
  X(kXWeirRetryAfterMs, "x-weir-retry-after-ms")    \
  X(kXWeirReason, "x-weir-reason")

/// A field name of the table; all others are kOther. Codecs recognise them while parsing, so names
/// are compared only once.
enum class FieldId : std::uint8_t {
  kOther,
#define WEIR_X(enumerator, name) enumerator,
  WEIR_FIELDS(WEIR_X)
#undef WEIR_X
      kCount,
};

static_assert(static_cast<unsigned>(FieldId::kCount) <= 64, "a set of fields is one 64-bit word");

/// The id of a name in any case; kOther for everything that is not in the list.
[[nodiscard]] FieldId field_id(std::string_view name) noexcept;

/// The lower-case name; empty for kOther.
[[nodiscard]] std::string_view field_name(FieldId id) noexcept;

/// A set of fields in one word.
[[nodiscard]] constexpr std::uint64_t field_bit(FieldId id) noexcept {
  return std::uint64_t{1} << static_cast<unsigned>(id);
}

/// Fields that are never forwarded, whatever Connection says (RFC 9110 §7.6.1 and common practice).
/// Transfer-Encoding is among them: each hop has its own framing.
[[nodiscard]] bool is_hop_by_hop(FieldId id) noexcept;

/// Fields that are not allowed in a trailer section: framing, routing, authentication, request
/// modifiers, content description (RFC 9110 §6.5.1).
[[nodiscard]] bool is_forbidden_in_trailers(FieldId id) noexcept;

/// A non-empty RFC 9110 token.
[[nodiscard]] bool is_valid_field_name(std::string_view name) noexcept;

/// Visible ASCII, space, tab and bytes from 0x80; no other control byte. May be empty.
[[nodiscard]] bool is_valid_field_value(std::string_view value) noexcept;

/// Ignores the case of ASCII letters only, as for protocol elements.
[[nodiscard]] bool equals_ignore_case(std::string_view a, std::string_view b) noexcept;

}  // namespace weir::inline v0::http
