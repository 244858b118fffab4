#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"
#include "weir/experimental/http/parse_error.h"

namespace weir::inline v0::http::h1 {

enum class Version : std::uint8_t { k10, k11 };

enum class BodyKind : std::uint8_t {
  kNone,        // ends with its head
  kLength,      // Content-Length, even if it is 0
  kChunked,     // Transfer-Encoding: chunked
  kUntilClose,  // responses only
};

/// How the end of a body is found; the head decides it.
struct BodyFraming {
  BodyKind kind = BodyKind::kNone;
  std::uint64_t length = 0;  // kLength only

  [[nodiscard]] bool empty() const noexcept {
    return kind == BodyKind::kNone || (kind == BodyKind::kLength && length == 0);
  }
  bool operator==(const BodyFraming&) const = default;
};

enum class TargetForm : std::uint8_t { kOrigin, kAbsolute, kAuthority, kAsterisk };

/// A complete, checked request head.
///
/// Lifetime: views into the bytes and the storage that parse_head() was given.
struct RequestHead {
  RequestMeta meta;
  HeaderList headers;
  BodyFraming body;
  Method method = Method::kOther;
  Version version = Version::k11;
  TargetForm form = TargetForm::kOrigin;
  bool keep_alive = false;       // the client allows another request after this one
  bool expect_continue = false;  // the client sends its body after 100 Continue
  bool upgrade = false;          // Connection: upgrade with Upgrade, HTTP/1.1, no body
  bool te_trailers = false;      // the client accepts trailers in the response
};

/// A complete, checked response head.
///
/// Lifetime: as RequestHead.
struct ResponseHead {
  std::string_view reason;
  HeaderList headers;
  BodyFraming body;
  unsigned status = 0;
  Version version = Version::k11;
  bool keep_alive = false;     // the connection may carry another request after this body
  bool informational = false;  // 1xx except 101: drop or forward it, then parse the next head
  bool tunnel = false;         // 101, or 2xx to CONNECT: what follows is not HTTP
};

enum class ParseStatus : std::uint8_t { kNeedMore, kComplete, kError };

struct HeadResult {
  ParseStatus status = ParseStatus::kNeedMore;
  ParseError error = ParseError::kNone;
  std::size_t consumed = 0;  // kComplete: bytes of the head; what follows is body or next message
};

}  // namespace weir::inline v0::http::h1
