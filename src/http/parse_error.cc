#include "weir/experimental/http/parse_error.h"

#include <array>
#include <cstddef>

namespace weir::inline v0::http {
namespace {

struct Row {
  ParseError error;
  unsigned status;
  std::string_view name;
};

constexpr std::array kRows = [] {
  using enum ParseError;
  return std::array{
      Row{kNone, 200, "none"},
      Row{kBadMethod, 400, "bad_method"},
      Row{kMethodTooLong, 501, "method_too_long"},
      Row{kBadTarget, 400, "bad_target"},
      Row{kTargetTooLong, 414, "target_too_long"},
      Row{kBadVersion, 400, "bad_version"},
      Row{kUnsupportedVersion, 505, "unsupported_version"},
      Row{kBadStatusLine, 502, "bad_status_line"},
      Row{kBadStatusCode, 502, "bad_status_code"},
      Row{kBadLineEnding, 400, "bad_line_ending"},
      Row{kObsoleteFold, 400, "obsolete_fold"},
      Row{kBadFieldName, 400, "bad_field_name"},
      Row{kBadFieldValue, 400, "bad_field_value"},
      Row{kHeadTooLarge, 431, "head_too_large"},
      Row{kTooManyFields, 431, "too_many_fields"},
      Row{kMissingHost, 400, "missing_host"},
      Row{kRepeatedHost, 400, "repeated_host"},
      Row{kBadHost, 400, "bad_host"},
      Row{kHostMismatch, 400, "host_mismatch"},
      Row{kBadContentLength, 400, "bad_content_length"},
      Row{kRepeatedContentLength, 400, "repeated_content_length"},
      Row{kLengthAndTransferEncoding, 400, "length_and_transfer_encoding"},
      Row{kBadTransferEncoding, 400, "bad_transfer_encoding"},
      Row{kUnknownTransferCoding, 501, "unknown_transfer_coding"},
      Row{kTransferEncodingInHttp10, 400, "transfer_encoding_in_http10"},
      Row{kBadConnection, 400, "bad_connection"},
      Row{kBadExpect, 417, "bad_expect"},
      Row{kUnexpectedBody, 400, "unexpected_body"},
      Row{kBadChunkSize, 400, "bad_chunk_size"},
      Row{kChunkExtensionTooLong, 400, "chunk_extension_too_long"},
      Row{kBadChunkEnd, 400, "bad_chunk_end"},
      Row{kTrailersTooLarge, 431, "trailers_too_large"},
      Row{kForbiddenTrailer, 400, "forbidden_trailer"},
      Row{kTooManyInformational, 502, "too_many_informational"},
      Row{kUnexpectedSwitch, 502, "unexpected_switch"},
      Row{kTruncated, 400, "truncated"},
  };
}();

consteval bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].error) != i) return false;
  return kRows.size() == static_cast<std::size_t>(ParseError::kCount);
}
static_assert(in_order(), "one row per error, in the order of the enum");

}  // namespace

unsigned status_of(ParseError error) noexcept {
  return kRows[static_cast<std::size_t>(error)].status;
}

std::string_view to_string(ParseError error) noexcept {
  return kRows[static_cast<std::size_t>(error)].name;
}

}  // namespace weir::inline v0::http
