#pragma once

#include <cstdint>
#include <string_view>

namespace weir::inline v0::http {

/// The field names that Weir reads, writes or removes; all others are kOther. Codecs recognise them
/// while parsing, so names are compared only once.
enum class FieldId : std::uint8_t {
  kOther = 0,
  // message framing and routing
  kHost,
  kContentLength,
  kTransferEncoding,
  kConnection,
  kKeepAlive,
  kProxyConnection,
  kUpgrade,
  kTe,
  kTrailer,
  kExpect,
  kHttp2Settings,
  kMaxForwards,
  // content
  kContentType,
  kContentEncoding,
  kContentRange,
  kRange,
  kCacheControl,
  kDate,
  kServer,
  kRetryAfter,
  kLocation,
  kUserAgent,
  kAccept,
  kAcceptEncoding,
  kVary,
  kAge,
  // identity
  kAuthorization,
  kProxyAuthorization,
  kProxyAuthenticate,
  kWwwAuthenticate,
  kCookie,
  kSetCookie,
  kXApiKey,
  // the path of a request through proxies
  kForwarded,
  kVia,
  kXForwardedFor,
  kXForwardedHost,
  kXForwardedProto,
  kXRealIp,
  kXRequestId,
  kTraceparent,
  kTracestate,
  // gRPC
  kGrpcTimeout,
  kGrpcStatus,
  kGrpcMessage,
  kGrpcRetryPushbackMs,
  // Weir
  kXWeirPriority,
  kXWeirPeer,
  kXWeirActor,
  kXWeirAttempt,
  kXWeirDeadlineMs,
  kXWeirRetryAfterMs,
  kXWeirReason,
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
