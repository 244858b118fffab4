#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/h1/request_parser.h"
#include "weir/experimental/http/limits.h"

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

/// Scans a whole head: its start line with `scan_line(bytes, cursor)`, then its fields, which go to
/// `out`. kNeedMore, with the cursor where to go on, is returned only below the head's limit.
template <class ScanLine>
[[nodiscard]] HeadResult scan_head(std::span<const char> bytes, HeadCursor& cursor,
                                   const HttpLimits& limits, std::span<HeaderView> storage,
                                   HeaderList& out, ScanLine scan_line) noexcept {
  WEIR_ASSERT(storage.size() >= limits.header_count_max);
  const std::size_t visible = std::min<std::size_t>(bytes.size(), limits.head_bytes_max);
  const HeadBytes view{bytes.data(), bytes.data() + visible};
  const auto scan = [&](HeaderList* fields) {
    if (cursor.state < kLineStart) {
      const HeadResult result = scan_line(view, cursor);
      if (result.status != ParseStatus::kComplete) return result;
    }
    return scan_fields(view, cursor, limits.header_count_max, fields);
  };
  const bool resumed = cursor.pos != 0;
  if (!resumed) out.reset(storage);
  HeadResult result = scan(resumed ? nullptr : &out);
  if (result.status == ParseStatus::kNeedMore) {
    return bytes.size() < limits.head_bytes_max ? result : refuse(ParseError::kHeadTooLarge);
  }
  if (result.status == ParseStatus::kComplete && resumed) {
    // The head is complete and valid: scan it again from the first byte to record the views.
    cursor = {};
    out.reset(storage);
    result = scan(&out);
  }
  cursor = {};
  return result;
}

}  // namespace weir::inline v0::http::h1
