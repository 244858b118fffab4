// Any two strings as name and value of a field: the checks agree with RFC 9110 byte by byte, and a
// field that the writer accepts is parsed as exactly that field.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/serializer.h"

#include "http/h1/head_meaning.h"
#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

bool token_by_the_book(std::string_view text) {
  for (const char c : text) {
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alnum &&
        (c == '\0' || std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos))
      return false;
  }
  return !text.empty();
}

bool value_by_the_book(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte != '\t' && (byte < 0x20 || byte == 0x7f)) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

void check_id(std::string_view name) {
  http::FieldId expected = http::FieldId::kOther;
  for (unsigned i = 1; i < static_cast<unsigned>(http::FieldId::kCount); ++i)
    if (lower_case(name) == field_name(static_cast<http::FieldId>(i)))
      expected = static_cast<http::FieldId>(i);
  WEIR_ASSERT(field_id(name) == expected);
}

void check_meanings(std::string_view value) {
  if (const auto length = parse_content_length(value)) {
    WEIR_ASSERT(std::to_string(*length) == value);
  }
  if (const auto authority = parse_authority(value)) {
    const std::string port(authority->port);
    WEIR_ASSERT(std::string(authority->host) + (port.empty() ? "" : ":" + port) == value);
    WEIR_ASSERT(value.find_first_of("@/?#, \t\\%") == std::string_view::npos);
  }
}

void check_round_trip(std::string_view name, std::string_view value) {
  std::array<char, 4096> buffer;
  HeadWriter writer(buffer);
  writer.status(200);
  writer.field(name, value);
  writer.content_length(0);
  const auto size = writer.end();
  const bool framing =
      equals_ignore_case(name, "content-length") || equals_ignore_case(name, "transfer-encoding");
  const bool fits = name.size() + value.size() + 64 < buffer.size();
  WEIR_ASSERT(size.has_value() ==
                  (fits && !framing && is_valid_field_name(name) && is_valid_field_value(value)) ||
              !fits);
  if (!size) return;
  ResponseTranscript back;
  back.feed({buffer.data(), *size});
  if (back.error() == http::ParseError::kBadConnection ||
      back.error() == http::ParseError::kBadFieldName)
    return;  // a Connection field with a forbidden name, framing with underscores
  WEIR_ASSERT(back.messages().size() == 1 && back.left_over().empty());
  const auto& fields = back.messages().front().fields;
  WEIR_ASSERT(fields.size() == 2);
  WEIR_ASSERT(fields[0].first == lower_case(name) && fields[0].second == trimmed(value));
}

void check(std::string_view bytes) {
  const std::size_t split = bytes.find('\n');
  const std::string_view name = bytes.substr(0, split);
  const std::string_view value =
      split == std::string_view::npos ? std::string_view{} : bytes.substr(split + 1);
  WEIR_ASSERT(is_valid_field_name(name) == token_by_the_book(name));
  WEIR_ASSERT(is_valid_field_value(value) == value_by_the_book(value));
  WEIR_ASSERT(equals_ignore_case(name, value) == (lower_case(name) == lower_case(value)));
  if (is_valid_field_name(name)) check_id(name);
  check_meanings(value);
  check_round_trip(name, value);
}

}  // namespace
}  // namespace weir::inline v0::http::h1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::http::h1::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
