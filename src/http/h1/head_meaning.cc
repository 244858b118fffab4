#include "http/h1/head_meaning.h"

#include "weir/base/ascii.h"

#include "scan.h"

namespace weir::inline v0::http::h1 {
namespace {

/// Removes the next element from a comma-separated list; false at its end. Elements may be empty.
[[nodiscard]] bool next_element(std::string_view& rest, std::string_view& element) noexcept {
  if (rest.data() == nullptr) return false;
  const std::size_t comma = rest.find(',');
  element = trimmed(rest.substr(0, comma));
  rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  return true;
}

/// Accepts only "chunked". 501 for another coding before a final chunked: the framing is valid, but
/// we cannot decode the content. 400 for anything whose end may be found at different places.
[[nodiscard]] ParseError judge_transfer_encoding(std::string_view value) noexcept {
  if (equals_ignore_case(value, "chunked")) return ParseError::kNone;
  bool final_chunked = false;
  while (value.data() != nullptr) {
    std::string_view coding;
    if (!next_element(value, coding)) break;
    if (final_chunked || !is_valid_field_name(coding)) return ParseError::kBadTransferEncoding;
    final_chunked = equals_ignore_case(coding, "chunked");
  }
  return final_chunked ? ParseError::kUnknownTransferCoding : ParseError::kBadTransferEncoding;
}

void mark_hop_by_hop(HeaderList& headers, std::string_view name) noexcept {
  for (HeaderView& field : headers.fields_for_codec())
    if (field.id == FieldId::kOther && equals_ignore_case(field.name, name))
      field.hop_by_hop = true;
}

/// Connection lists fields that are not forwarded. A known field that must be forwarded may not be
/// listed: removing it would take from the backend a field that it relies on.
[[nodiscard]] bool may_be_named(std::string_view option) noexcept {
  if (!is_valid_field_name(option)) return false;
  const FieldId id = field_id(option);
  return id == FieldId::kOther || is_hop_by_hop(id);
}

[[nodiscard]] ParseError read_connection(std::string_view value, ConnectionOptions& options,
                                         HeaderList& headers) noexcept {
  std::string_view option;
  while (next_element(value, option)) {
    if (option.empty()) continue;
    if (equals_ignore_case(option, "keep-alive")) {
      options.keep_alive = true;
    } else if (equals_ignore_case(option, "close")) {
      options.close = true;
    } else if (equals_ignore_case(option, "upgrade")) {
      options.upgrade = true;
    } else if (!may_be_named(option)) {
      return ParseError::kBadConnection;
    } else if (field_id(option) == FieldId::kOther) {
      mark_hop_by_hop(headers, option);
    }
  }
  return ParseError::kNone;
}

[[nodiscard]] bool valid_port(std::string_view port) noexcept {
  if (port.empty() || port.size() > 5) return false;
  std::uint32_t value = 0;
  for (const char c : port) {
    if (!scan::is(c, scan::kDigit)) return false;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return value <= 65535;
}

/// Between the brackets: checks only that it is unambiguous; connect() checks the address itself.
[[nodiscard]] bool valid_ip_literal(std::string_view text) noexcept {
  if (text.size() < 2) return false;
  for (const char c : text)
    if (!scan::is(c, scan::kHex) && c != ':' && c != '.') return false;
  return text.find(':') != std::string_view::npos;
}

}  // namespace

Result<std::uint64_t, ParseError> parse_content_length(std::string_view value) noexcept {
  const unexpected bad(ParseError::kBadContentLength);
  constexpr std::size_t kDigitsMax = 19;  // of 2^63 - 1
  if (value.empty() || value.size() > kDigitsMax) return bad;
  if (value.front() == '0' && value.size() > 1) return bad;
  std::uint64_t number = 0;
  for (const char c : value) {
    if (!scan::is(c, scan::kDigit)) return bad;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (number > static_cast<std::uint64_t>(INT64_MAX)) return bad;
  return number;
}

Result<BodyFraming, ParseError> framing_of(const HeaderList& headers, Version version) noexcept {
  const bool has_length = headers.has(FieldId::kContentLength);
  if (headers.has(FieldId::kTransferEncoding)) {
    if (has_length) return unexpected(ParseError::kLengthAndTransferEncoding);
    if (version == Version::k10) return unexpected(ParseError::kTransferEncodingInHttp10);
    if (headers.repeats(FieldId::kTransferEncoding))
      return unexpected(ParseError::kBadTransferEncoding);
    const ParseError error = judge_transfer_encoding(headers.value(FieldId::kTransferEncoding));
    if (error != ParseError::kNone) return unexpected(error);
    return BodyFraming{BodyKind::kChunked, 0};
  }
  if (!has_length) return BodyFraming{};
  if (headers.repeats(FieldId::kContentLength))
    return unexpected(ParseError::kRepeatedContentLength);
  const auto length = parse_content_length(headers.value(FieldId::kContentLength));
  if (!length) return unexpected(length.error());
  return BodyFraming{BodyKind::kLength, *length};
}

Result<ConnectionOptions, ParseError> connection_options(HeaderList& headers) noexcept {
  ConnectionOptions options;
  const HeaderView* first = headers.find(FieldId::kConnection);
  if (first == nullptr) return options;
  if (!headers.repeats(FieldId::kConnection)) {
    const ParseError error = read_connection(first->value, options, headers);
    if (error != ParseError::kNone) return unexpected(error);
    return options;
  }
  for (const HeaderView& field : headers) {
    if (field.id != FieldId::kConnection) continue;
    const ParseError error = read_connection(field.value, options, headers);
    if (error != ParseError::kNone) return unexpected(error);
  }
  return options;
}

Result<Authority, ParseError> parse_authority(std::string_view text) noexcept {
  const unexpected bad(ParseError::kBadHost);
  const char* const end = text.data() + text.size();
  const char* host_end = nullptr;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos || !valid_ip_literal(text.substr(1, close - 1))) return bad;
    host_end = text.data() + close + 1;
  } else {
    host_end = scan::skip_by_table(text.data(), end, scan::kHost);
    if (host_end == text.data()) return bad;
  }
  const auto host_size = static_cast<std::size_t>(host_end - text.data());
  Authority authority{text.substr(0, host_size), {}};
  if (host_end == end) return authority;
  authority.port = text.substr(host_size + 1);
  if (*host_end != ':' || !valid_port(authority.port)) return bad;
  return authority;
}

bool list_has(std::string_view list, std::string_view token) noexcept {
  std::string_view element;
  while (next_element(list, element))
    if (equals_ignore_case(element, token)) return true;
  return false;
}

}  // namespace weir::inline v0::http::h1
