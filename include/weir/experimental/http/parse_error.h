#pragma once

#include <cstdint>
#include <string_view>

namespace weir::inline v0::http {

// Every parse error: enumerator, the status that a server answers with, and its name.
#define WEIR_PARSE_ERRORS(X)                                                                   \
  X(kNone, 200, "none")                                                                        \
  /* request line */                                                                           \
  X(kBadMethod, 400, "bad_method") /* not a token, or a line that does not start with one */   \
  X(kMethodTooLong, 501, "method_too_long")                                                    \
  X(kBadTarget, 400, "bad_target") /* a forbidden byte, or a form the method does not allow */ \
  X(kTargetTooLong, 414, "target_too_long")                                                    \
  X(kBadVersion, 400, "bad_version")                                                           \
  X(kUnsupportedVersion, 505, "unsupported_version") /* well-formed, neither 1.0 nor 1.1 */    \
  /* status line */                                                                            \
  X(kBadStatusLine, 502, "bad_status_line")                                                    \
  X(kBadStatusCode, 502, "bad_status_code")                                                    \
  /* fields */                                                                                 \
  X(kBadLineEnding, 400, "bad_line_ending") /* a CR without LF, or an LF without CR */         \
  X(kObsoleteFold, 400, "obsolete_fold")    /* a line that continues the previous one */       \
  /* not a token, a blank before the colon, no colon, or a framing field with underscores: */  \
  X(kBadFieldName, 400, "bad_field_name")                                                      \
  X(kBadFieldValue, 400, "bad_field_value") /* a control byte */                               \
  X(kHeadTooLarge, 431, "head_too_large")                                                      \
  X(kTooManyFields, 431, "too_many_fields")                                                    \
  /* meaning */                                                                                \
  X(kMissingHost, 400, "missing_host")                                                         \
  X(kRepeatedHost, 400, "repeated_host")                                                       \
  X(kBadHost, 400, "bad_host")                                                                 \
  X(kHostMismatch, 400, "host_mismatch") /* absolute or authority target differs from Host */  \
  X(kBadContentLength, 400, "bad_content_length")                                              \
  X(kRepeatedContentLength, 400, "repeated_content_length")                                    \
  X(kLengthAndTransferEncoding, 400, "length_and_transfer_encoding")                           \
  X(kBadTransferEncoding, 400, "bad_transfer_encoding")                                        \
  /* an unknown coding before the final chunked: */                                            \
  X(kUnknownTransferCoding, 501, "unknown_transfer_coding")                                    \
  X(kTransferEncodingInHttp10, 400, "transfer_encoding_in_http10")                             \
  /* not a list of tokens, or names a field that may not be removed: */                        \
  X(kBadConnection, 400, "bad_connection")                                                     \
  X(kBadExpect, 417, "bad_expect")                                                             \
  /* a body, or framing for one, where none is allowed: */                                     \
  X(kUnexpectedBody, 400, "unexpected_body")                                                   \
  /* chunked */                                                                                \
  X(kBadChunkSize, 400, "bad_chunk_size")                                                      \
  X(kChunkExtensionTooLong, 400, "chunk_extension_too_long")                                   \
  X(kBadChunkEnd, 400, "bad_chunk_end")                                                        \
  X(kTrailersTooLarge, 431, "trailers_too_large")                                              \
  X(kForbiddenTrailer, 400, "forbidden_trailer")                                               \
  /* responses only */                                                                         \
  X(kTooManyInformational, 502, "too_many_informational")                                      \
  X(kUnexpectedSwitch, 502, "unexpected_switch") /* 101 without a request for an upgrade */    \
  /* end of input */                                                                           \
  X(kTruncated, 400, "truncated")

/// Why bytes were refused. The connection is closed after any of these, because the end of the
/// message is not known, or the message may have been understood differently by the sender.
enum class ParseError : std::uint8_t {
#define WEIR_X(enumerator, status, name) enumerator,
  WEIR_PARSE_ERRORS(WEIR_X)
#undef WEIR_X
      kCount,
};

/// The status a server answers a refused request with.
[[nodiscard]] unsigned status_of(ParseError error) noexcept;

/// A stable snake_case name for metrics and logs: "repeated_content_length".
[[nodiscard]] std::string_view to_string(ParseError error) noexcept;

}  // namespace weir::inline v0::http
