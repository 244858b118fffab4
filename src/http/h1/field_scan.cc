#include "h1/field_scan.h"

#include <algorithm>

#include "scan.h"

namespace weir::inline v0::http::h1 {
namespace {

/// Backends that map '_' to '-' (CGI and similar) would read these as framing fields.
[[nodiscard]] bool is_framing_with_underscores(std::string_view name) noexcept {
  const auto same = [&](std::string_view known) {
    return std::equal(known.begin(), known.end(), name.begin(), [](char k, char c) {
      return k == (c == '_' ? '-' : static_cast<char>(c | 0x20));
    });
  };
  if (name.size() == 14 && name[7] == '_') return same("content-length");
  if (name.size() == 17 && name[8] == '_') return same("transfer-encoding");
  return false;
}

void record(HeaderList& out, std::string_view name, const char* value, const char* end) noexcept {
  while (end != value && (end[-1] == ' ' || end[-1] == '\t')) --end;
  const FieldId id = field_id(name);
  out.append({name, {value, static_cast<std::size_t>(end - value)}, id, is_hop_by_hop(id)});
}

[[nodiscard]] HeadCursor cursor_at(const char* base, const char* p, const char* mark,
                                   FieldState state) noexcept {
  return {.pos = static_cast<std::uint32_t>(p - base),
          .mark = static_cast<std::uint32_t>(mark - base),
          .count = 0,
          .state = state};
}

[[nodiscard]] ParseError why_no_line_start(char c) noexcept {
  if (c == ' ' || c == '\t') return ParseError::kObsoleteFold;
  return c == '\n' ? ParseError::kBadLineEnding : ParseError::kNone;
}

}  // namespace

HeadResult scan_fields(HeadBytes bytes, HeadCursor& cursor, std::uint32_t count_max,
                       HeaderList* out) noexcept {
  const char* const base = bytes.base;
  const char* const end = bytes.end;
  const char* p = base + cursor.pos;
  const char* name = base + cursor.mark;
  std::size_t name_size = 0;
  const char* value = p;
  std::uint8_t state = cursor.state;
  std::uint32_t count = cursor.count;

  const auto need_more = [&](FieldState at) -> HeadResult {
    cursor = cursor_at(base, p, name, at);
    cursor.count = count;
    return {};
  };

  for (;;) {
    switch (state) {
      case kLineStart:
        if (p == end) return need_more(kLineStart);
        if (*p == '\r') {
          ++p;
          state = kEndLf;
          continue;
        }
        if (const ParseError error = why_no_line_start(*p); error != ParseError::kNone)
          return refuse(error);
        if (count == count_max) return refuse(ParseError::kTooManyFields);
        ++count;
        name = p;
        [[fallthrough]];
      case kName:
        p = scan::skip_token(p, end);
        if (p == end) return need_more(kName);
        name_size = static_cast<std::size_t>(p - name);
        if (*p != ':' || name_size == 0 || is_framing_with_underscores({name, name_size}))
          return refuse(ParseError::kBadFieldName);
        ++p;
        [[fallthrough]];
      case kBlanks:
        while (p != end && (*p == ' ' || *p == '\t')) ++p;
        if (p == end) return need_more(kBlanks);
        value = p;
        [[fallthrough]];
      case kValue:
        p = scan::skip_value(p, end);
        if (p == end) return need_more(kValue);
        if (*p != '\r')
          return refuse(*p == '\n' ? ParseError::kBadLineEnding : ParseError::kBadFieldValue);
        ++p;
        [[fallthrough]];
      case kValueLf:
        if (p == end) return need_more(kValueLf);
        if (*p != '\n') return refuse(ParseError::kBadLineEnding);
        if (out != nullptr) record(*out, {name, name_size}, value, p - 1);
        ++p;
        state = kLineStart;
        continue;
      default:  // kEndLf
        if (p == end) return need_more(kEndLf);
        if (*p != '\n') return refuse(ParseError::kBadLineEnding);
        ++p;
        cursor.pos = static_cast<std::uint32_t>(p - base);
        return {.status = ParseStatus::kComplete, .consumed = cursor.pos};
    }
  }
}

}  // namespace weir::inline v0::http::h1
