#pragma once

#include <cstdint>

#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/h1/request_parser.h"

namespace weir::inline v0::http::h1 {

/// Head states from here on belong to scan_fields, smaller ones to the start lines.
enum FieldState : std::uint8_t {
  kLineStart = 16,
  kName,
  kBlanks,
  kValue,
  kValueLf,
  kEndLf,
};

/// A cursor at the first byte of a field section.
[[nodiscard]] inline HeadCursor field_section_at(std::uint32_t pos) noexcept {
  return {.pos = pos, .mark = pos, .count = 0, .state = kLineStart};
}

[[nodiscard]] inline HeadResult refuse(ParseError error) noexcept {
  return {.status = ParseStatus::kError, .error = error};
}

/// The bytes of a message, up to the limit that applies to its head.
struct HeadBytes {
  const char* base;
  const char* end;
};

/// Checks a field section (head or trailers) from the cursor up to and including its empty line.
///
/// Resumable: kNeedMore leaves the cursor at the end of the bytes, and an error is found at the
/// same byte however the input was split. With `out`, fields are recorded; this needs a cursor at
/// the section's first byte and all bytes in one call, so a caller that got kNeedMore scans once
/// more. On kComplete, cursor.pos is behind the empty line.
[[nodiscard]] HeadResult scan_fields(HeadBytes bytes, HeadCursor& cursor, std::uint32_t count_max,
                                     HeaderList* out) noexcept;

}  // namespace weir::inline v0::http::h1
