#pragma once

#include <cstdint>
#include <string_view>

namespace weir::inline v0::http {

/// Why bytes were refused. The connection is closed after any of these, because the end of the
/// message is not known, or the message may have been understood differently by the sender.
enum class ParseError : std::uint8_t {
  kNone = 0,
  // request line
  kBadMethod,           // 400: not a token, or a line that does not start with one
  kMethodTooLong,       // 501
  kBadTarget,           // 400: a forbidden byte, or a form the method does not allow
  kTargetTooLong,       // 414
  kBadVersion,          // 400
  kUnsupportedVersion,  // 505: well-formed, neither 1.0 nor 1.1
  // status line
  kBadStatusLine,
  kBadStatusCode,
  // fields
  kBadLineEnding,  // 400: a CR without LF, or an LF without CR
  kObsoleteFold,   // 400: a line that continues the previous one
  kBadFieldName,   // 400: not a token, a blank before the colon, no colon, or a framing field
                   // spelled with underscores
  kBadFieldValue,  // 400: a control byte
  kHeadTooLarge,   // 431
  kTooManyFields,  // 431
  // meaning
  kMissingHost,
  kRepeatedHost,
  kBadHost,
  kHostMismatch,  // 400: absolute or authority target differs from Host
  kBadContentLength,
  kRepeatedContentLength,
  kLengthAndTransferEncoding,
  kBadTransferEncoding,
  kUnknownTransferCoding,     // 501: an unknown coding before the final chunked
  kTransferEncodingInHttp10,  // 400
  kBadConnection,             // 400: not a list of tokens, or names a field that may not be removed
  kBadExpect,                 // 417
  kUnexpectedBody,            // a body, or framing for one, where none is allowed
  // chunked
  kBadChunkSize,
  kChunkExtensionTooLong,
  kBadChunkEnd,
  kTrailersTooLarge,  // 431
  kForbiddenTrailer,
  // responses only
  kTooManyInformational,
  kUnexpectedSwitch,  // 101 without a request for an upgrade
  // end of input
  kTruncated,
  kCount,
};

/// The status a server answers a refused request with.
[[nodiscard]] unsigned status_of(ParseError error) noexcept;

/// A stable snake_case name for metrics and logs: "repeated_content_length".
[[nodiscard]] std::string_view to_string(ParseError error) noexcept;

}  // namespace weir::inline v0::http
