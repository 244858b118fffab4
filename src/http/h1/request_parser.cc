#include "weir/experimental/http/h1/request_parser.h"

#include <algorithm>
#include <cstring>

#include "h1/field_scan.h"
#include "http/h1/head_meaning.h"
#include "scan.h"

namespace weir::inline v0::http::h1 {
namespace {

enum RequestState : std::uint8_t { kStart, kStartLf, kMethod, kTarget, kVersion };

/// The positions of the parts of the request line, as offsets from the first byte.
struct RequestLine {
  std::string_view method;
  std::string_view target;
  Version version = Version::k11;
};

constexpr std::size_t kVersionBytes = 8;  // "HTTP/1.1"

[[nodiscard]] std::string_view between(const char* from, const char* to) noexcept {
  return {from, static_cast<std::size_t>(to - from)};
}

/// `p` has "HTTP/x.y" and the two bytes that must be CRLF.
[[nodiscard]] ParseError read_version(const char* p, Version& version) noexcept {
  if (std::memcmp(p, "HTTP/1.1", kVersionBytes) == 0) {
    version = Version::k11;
  } else if (std::memcmp(p, "HTTP/1.0", kVersionBytes) == 0) {
    version = Version::k10;
  } else if (std::memcmp(p, "HTTP/", 5) == 0 && scan::is(p[5], scan::kDigit) && p[6] == '.' &&
             scan::is(p[7], scan::kDigit)) {
    return ParseError::kUnsupportedVersion;
  } else {
    return ParseError::kBadVersion;
  }
  if (p[8] == '\r' && p[9] == '\n') return ParseError::kNone;
  return p[8] == '\r' || p[8] == '\n' ? ParseError::kBadLineEnding : ParseError::kBadVersion;
}

/// Scans the request line from the cursor on. kComplete: cursor at the first field line. `line` is
/// complete only if the scan began at the first byte.
[[nodiscard]] HeadResult scan_request_line(HeadBytes bytes, HeadCursor& cursor,
                                           const HttpLimits& limits, RequestLine& line) noexcept {
  const char* const end = bytes.end;
  const char* p = bytes.base + cursor.pos;
  const char* mark = bytes.base + cursor.mark;
  const auto need_more = [&](RequestState at) -> HeadResult {
    cursor = {.pos = static_cast<std::uint32_t>(p - bytes.base),
              .mark = static_cast<std::uint32_t>(mark - bytes.base),
              .count = 0,
              .state = at};
    return {};
  };
  // A token is scanned at most one byte past its cap.
  const auto cap = [&](std::uint32_t max) {
    const auto left = static_cast<std::size_t>(end - mark);
    return mark + std::min<std::size_t>(left, std::size_t{max} + 1);
  };
  const auto longer_than = [&](std::uint32_t max) {
    return static_cast<std::size_t>(p - mark) > max;
  };

  switch (cursor.state) {
    case kStart:
      if (p == end) return need_more(kStart);
      if (*p == '\r') ++p;
      [[fallthrough]];
    case kStartLf:
      if (p != bytes.base) {  // an empty line before the request: skipped once
        if (p == end) return need_more(kStartLf);
        if (*p != '\n') return refuse(ParseError::kBadLineEnding);
        ++p;
      }
      mark = p;
      [[fallthrough]];
    case kMethod:
      p = scan::skip_token(p, cap(limits.method_bytes_max));
      if (longer_than(limits.method_bytes_max)) return refuse(ParseError::kMethodTooLong);
      if (p == end) return need_more(kMethod);
      if (*p != ' ' || p == mark) return refuse(ParseError::kBadMethod);
      line.method = between(mark, p);
      mark = ++p;
      [[fallthrough]];
    case kTarget:
      p = scan::skip_target(p, cap(limits.uri_bytes_max));
      if (longer_than(limits.uri_bytes_max)) return refuse(ParseError::kTargetTooLong);
      if (p == end) return need_more(kTarget);
      if (*p != ' ' || p == mark) return refuse(ParseError::kBadTarget);
      line.target = between(mark, p);
      mark = ++p;
      [[fallthrough]];
    default:  // kVersion
      if (static_cast<std::size_t>(end - p) < kVersionBytes + 2) return need_more(kVersion);
      if (const ParseError error = read_version(p, line.version); error != ParseError::kNone)
        return refuse(error);
      cursor = field_section_at(static_cast<std::uint32_t>(p + kVersionBytes + 2 - bytes.base));
      return {.status = ParseStatus::kComplete};
  }
}

/// scheme "://" authority [path]; the scheme is http or https.
[[nodiscard]] ParseError read_absolute_target(std::string_view target, Method method,
                                              RequestMeta& meta) noexcept {
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) return ParseError::kBadTarget;
  const std::string_view scheme = target.substr(0, colon);
  if (equals_ignore_case(scheme, "http")) {
    meta.scheme = "http";
  } else if (equals_ignore_case(scheme, "https")) {
    meta.scheme = "https";
  } else {
    return ParseError::kBadTarget;
  }
  target.remove_prefix(colon + 3);
  const std::size_t path = target.find_first_of("/?");
  meta.authority = target.substr(0, path);
  if (!parse_authority(meta.authority)) return ParseError::kBadTarget;
  if (path == std::string_view::npos) {
    meta.path = method == Method::kOptions ? "*" : "/";
    return ParseError::kNone;
  }
  meta.path = target.substr(path);
  return meta.path.front() == '/' ? ParseError::kNone : ParseError::kBadTarget;
}

[[nodiscard]] ParseError read_target(std::string_view target, RequestHead& head) noexcept {
  RequestMeta& meta = head.meta;
  if (head.method == Method::kConnect) {
    head.form = TargetForm::kAuthority;
    meta.authority = target;
    meta.path = {};
    const auto authority = parse_authority(target);
    return authority && !authority->port.empty() ? ParseError::kNone : ParseError::kBadTarget;
  }
  if (target.front() == '/') {
    head.form = TargetForm::kOrigin;
    meta.path = target;
    return ParseError::kNone;
  }
  if (target == "*") {
    head.form = TargetForm::kAsterisk;
    meta.path = target;
    return head.method == Method::kOptions ? ParseError::kNone : ParseError::kBadTarget;
  }
  head.form = TargetForm::kAbsolute;
  return read_absolute_target(target, head.method, meta);
}

/// Checks Host, and compares it with the target. They must be equal, byte for byte except for case;
/// only for CONNECT may Host omit the port, as many clients do.
[[nodiscard]] ParseError read_host(RequestHead& head) noexcept {
  const HeaderView* host = head.headers.find(FieldId::kHost);
  if (host == nullptr)
    return head.version == Version::k10 ? ParseError::kNone : ParseError::kMissingHost;
  if (head.headers.repeats(FieldId::kHost)) return ParseError::kRepeatedHost;
  if (!parse_authority(host->value)) return ParseError::kBadHost;
  if (head.meta.authority.empty()) {
    head.meta.authority = host->value;
    return ParseError::kNone;
  }
  if (equals_ignore_case(host->value, head.meta.authority)) return ParseError::kNone;
  if (head.form == TargetForm::kAuthority &&
      equals_ignore_case(host->value, parse_authority(head.meta.authority)->host))
    return ParseError::kNone;
  return ParseError::kHostMismatch;
}

[[nodiscard]] ParseError read_request_framing(RequestHead& head) noexcept {
  const auto framing = framing_of(head.headers, head.version);
  if (!framing) return framing.error();
  head.body = *framing;
  if (head.method == Method::kConnect && head.body.kind != BodyKind::kNone)
    return ParseError::kUnexpectedBody;
  if (head.method == Method::kTrace && !head.body.empty()) return ParseError::kUnexpectedBody;
  return ParseError::kNone;
}

/// Expect applies only to HTTP/1.1 (RFC 9110 §10.1.1) and has no effect without a body.
[[nodiscard]] ParseError read_expect(RequestHead& head) noexcept {
  head.expect_continue = false;
  const HeaderView* expect = head.headers.find(FieldId::kExpect);
  if (expect == nullptr || head.version == Version::k10) return ParseError::kNone;
  if (head.headers.repeats(FieldId::kExpect) || !equals_ignore_case(expect->value, "100-continue"))
    return ParseError::kBadExpect;
  head.expect_continue = !head.body.empty();
  return ParseError::kNone;
}

[[nodiscard]] bool accepts_trailers(const HeaderList& headers) noexcept {
  if (!headers.has(FieldId::kTe)) return false;
  return std::any_of(headers.begin(), headers.end(), [](const HeaderView& field) {
    return field.id == FieldId::kTe && list_has(field.value, "trailers");
  });
}

[[nodiscard]] ParseError understand_request(const RequestLine& line, RequestHead& head) noexcept {
  head.meta.method = line.method;
  head.meta.authority = {};
  head.method = method_of(line.method);
  head.version = line.version;
  ParseError error = read_target(line.target, head);
  if (error == ParseError::kNone) error = read_host(head);
  if (error == ParseError::kNone) error = read_request_framing(head);
  if (error == ParseError::kNone) error = read_expect(head);
  if (error != ParseError::kNone) return error;

  const auto options = connection_options(head.headers);
  if (!options) return options.error();
  head.keep_alive = persists(head.version, *options);
  // No upgrade if there is a body, because the body's framing would decide where the tunnel starts.
  // The request is then served without it (RFC 9110 §7.8 lets a server ignore it).
  head.upgrade = options->upgrade && head.version == Version::k11 && head.body.empty() &&
                 head.headers.has(FieldId::kUpgrade);
  head.te_trailers = accepts_trailers(head.headers);
  return ParseError::kNone;
}

}  // namespace

HeadResult RequestParser::parse_head(std::span<const char> bytes, std::span<HeaderView> storage,
                                     RequestHead& head) noexcept {
  RequestLine line;
  const HeadResult result = scan_head(bytes, cursor_, *limits_, storage, head.headers,
                                      [&](HeadBytes view, HeadCursor& cursor) {
                                        return scan_request_line(view, cursor, *limits_, line);
                                      });
  if (result.error == ParseError::kHeadTooLarge && cursor_.state == kTarget) {
    return refuse(ParseError::kTargetTooLong);
  }
  if (result.status != ParseStatus::kComplete) return result;
  head.meta.scheme = scheme_;
  if (const ParseError error = understand_request(line, head); error != ParseError::kNone)
    return refuse(error);
  return result;
}

}  // namespace weir::inline v0::http::h1
