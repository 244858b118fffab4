#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/limits.h"

namespace weir::inline v0::http::h1 {

/// Where a head parser stopped: offsets, never pointers, so the bytes may move between calls.
struct HeadCursor {
  std::uint32_t pos = 0;    // all bytes before it have been checked
  std::uint32_t mark = 0;   // where the current token began
  std::uint32_t count = 0;  // fields seen
  std::uint8_t state = 0;
};

/// Reads one HTTP/1.x request head from a contiguous region that the caller fills.
///
///   RequestHead head;
///   switch (auto r = parser.parse_head(bytes, storage, head); r.status) {
///     case kNeedMore: read more behind the same bytes (they may move), call again with all of them
///     case kComplete: drop r.consumed bytes after use; body by BodyDecoder(head.body)
///     case kError:    answer status_of(r.error), close
///   }
///
/// Promises: strict RFC 9112; ambiguous input is refused (docs/design/http1-codec.md lists every
/// case). The result does not depend on how the input was split. It stops at the end of one head:
/// bytes of a body or of a pipelined request are not read. At most one empty line before a request
/// line is skipped (and counted in `consumed`). No allocation, no throw.
/// Thread-safety: none; one per connection (or per loop, with reset(), if heads arrive whole).
/// Cost: one pass over a head that arrives whole; at most two if it arrives in pieces, however
/// small.
/// Lifetime: `head` is set on kComplete only, and views `bytes` and `storage`.
class RequestParser {
 public:
  /// `scheme` is the scheme of origin-form targets: "http", or "https" with TLS. It is a literal.
  explicit RequestParser(const HttpLimits& limits, std::string_view scheme = "http") noexcept
      : limits_(&limits), scheme_(scheme) {}

  /// `bytes` starts at the first byte of the message in every call. `storage` has room for
  /// header_count_max views. Its content is defined only after kComplete, so connections of one
  /// loop may share it until their head is complete.
  [[nodiscard]] HeadResult parse_head(std::span<const char> bytes, std::span<HeaderView> storage,
                                      RequestHead& head) noexcept;

  /// Call it before the next message, except after kComplete.
  void reset() noexcept { cursor_ = {}; }

  /// Whether any byte of a message has arrived: distinguishes an idle connection from a slow one.
  [[nodiscard]] bool started() const noexcept { return cursor_.pos != 0; }

 private:
  const HttpLimits* limits_;
  std::string_view scheme_;
  HeadCursor cursor_;
};

}  // namespace weir::inline v0::http::h1
