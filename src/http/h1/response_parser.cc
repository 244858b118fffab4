#include "weir/experimental/http/h1/response_parser.h"

#include <cstring>

#include "h1/field_scan.h"
#include "http/h1/head_meaning.h"
#include "scan.h"

namespace weir::inline v0::http::h1 {
namespace {

enum StatusState : std::uint8_t { kCode, kReason, kReasonLf };

struct StatusLine {
  std::string_view reason;
  unsigned status = 0;
  Version version = Version::k11;
};

constexpr std::size_t kFixedBytes = 13;  // "HTTP/1.1 200" and the byte behind it

/// `p` has kFixedBytes bytes.
[[nodiscard]] ParseError read_fixed_part(const char* p, StatusLine& line) noexcept {
  if (std::memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1')) {
    const bool other_version = std::memcmp(p, "HTTP/", 5) == 0 && scan::is(p[5], scan::kDigit) &&
                               p[6] == '.' && scan::is(p[7], scan::kDigit);
    return other_version ? ParseError::kUnsupportedVersion : ParseError::kBadStatusLine;
  }
  line.version = p[7] == '1' ? Version::k11 : Version::k10;
  if (p[8] != ' ') return ParseError::kBadStatusLine;
  for (std::size_t i = 9; i < 12; ++i)
    if (!scan::is(p[i], scan::kDigit)) return ParseError::kBadStatusCode;
  line.status = static_cast<unsigned>((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
  if (line.status < 100 || line.status > 599) return ParseError::kBadStatusCode;
  // Without a reason the space before it is often missing too; this is accepted.
  return p[12] == ' ' || p[12] == '\r' ? ParseError::kNone : ParseError::kBadStatusLine;
}

[[nodiscard]] HeadResult scan_status_line(HeadBytes bytes, HeadCursor& cursor,
                                          StatusLine& line) noexcept {
  const char* const end = bytes.end;
  const char* p = bytes.base + cursor.pos;
  const auto need_more = [&](StatusState at) -> HeadResult {
    cursor = {
        .pos = static_cast<std::uint32_t>(p - bytes.base), .mark = 0, .count = 0, .state = at};
    return {};
  };

  switch (cursor.state) {
    case kCode:
      if (static_cast<std::size_t>(end - p) < kFixedBytes) return need_more(kCode);
      if (const ParseError error = read_fixed_part(p, line); error != ParseError::kNone)
        return refuse(error);
      p += p[12] == ' ' ? kFixedBytes : kFixedBytes - 1;
      [[fallthrough]];
    case kReason: {
      const char* reason = p;
      p = scan::skip_value(p, end);
      if (p == end) return need_more(kReason);
      if (*p != '\r')
        return refuse(*p == '\n' ? ParseError::kBadLineEnding : ParseError::kBadStatusLine);
      line.reason = {reason, static_cast<std::size_t>(p - reason)};
      ++p;
      [[fallthrough]];
    }
    default:  // kReasonLf
      if (p == end) return need_more(kReasonLf);
      if (*p != '\n') return refuse(ParseError::kBadLineEnding);
      cursor = field_section_at(static_cast<std::uint32_t>(p + 1 - bytes.base));
      return {.status = ParseStatus::kComplete};
  }
}

[[nodiscard]] bool has_framing(const HeaderList& headers) noexcept {
  return headers.has(FieldId::kContentLength) || headers.has(FieldId::kTransferEncoding);
}

/// RFC 9112 §6.3, in its order; framing where none is allowed is refused instead of ignored.
[[nodiscard]] ParseError read_response_framing(ResponseContext context,
                                               ResponseHead& head) noexcept {
  const auto framing = framing_of(head.headers, head.version);
  if (!framing) return framing.error();
  head.body = *framing;
  const bool success = head.status >= 200 && head.status < 300;
  if (head.status < 200 || (context.method == Method::kConnect && success)) {
    head.tunnel = head.status == 101 || head.status >= 200;
    head.informational = !head.tunnel;
    return has_framing(head.headers) ? ParseError::kUnexpectedBody : ParseError::kNone;
  }
  // "204, content-length: 0" is common and harmless; any other length could be read as a body.
  if (head.status == 204 && !head.body.empty()) return ParseError::kUnexpectedBody;
  if (context.method == Method::kHead || head.status == 204 || head.status == 304)
    head.body = {};
  else if (head.body.kind == BodyKind::kNone)
    head.body.kind = BodyKind::kUntilClose;
  return ParseError::kNone;
}

[[nodiscard]] ParseError understand_response(const StatusLine& line, ResponseContext context,
                                             ResponseHead& head) noexcept {
  head.reason = line.reason;
  head.status = line.status;
  head.version = line.version;
  head.informational = head.tunnel = false;
  if (const ParseError error = read_response_framing(context, head); error != ParseError::kNone)
    return error;
  const auto options = connection_options(head.headers);
  if (!options) return options.error();
  if (head.status == 101 &&
      !(context.upgrade_sent && options->upgrade && head.headers.has(FieldId::kUpgrade)))
    return ParseError::kUnexpectedSwitch;
  head.keep_alive =
      !head.tunnel && head.body.kind != BodyKind::kUntilClose && persists(head.version, *options);
  return ParseError::kNone;
}

}  // namespace

HeadResult ResponseParser::parse_head(std::span<const char> bytes, std::span<HeaderView> storage,
                                      ResponseHead& head) noexcept {
  StatusLine line;
  const HeadResult result = scan_head(
      bytes, cursor_, *limits_, storage, head.headers,
      [&](HeadBytes view, HeadCursor& cursor) { return scan_status_line(view, cursor, line); });
  if (result.status != ParseStatus::kComplete) return result;
  if (const ParseError error = understand_response(line, context_, head);
      error != ParseError::kNone)
    return refuse(error);
  if (head.informational && ++informational_ > limits_->informational_max)
    return refuse(ParseError::kTooManyInformational);
  return result;
}

}  // namespace weir::inline v0::http::h1
