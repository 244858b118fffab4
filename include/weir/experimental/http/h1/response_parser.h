#pragma once

#include <cstdint>
#include <span>

#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/h1/request_parser.h"
#include "weir/experimental/http/limits.h"

namespace weir::inline v0::http::h1 {

/// The facts of a request that decide how its response is framed.
struct ResponseContext {
  Method method = Method::kGet;
  bool upgrade_sent = false;  // 101 is an error without it
};

/// Reads the response heads of one request: at most `informational_max` 1xx heads, then the final
/// one.
///
/// Promises: as strict as RequestParser, because the server is not trusted either; every error is a
/// 502 to the client. Framing follows RFC 9112 §6.3: none for HEAD, 204, 304; a tunnel after 101
/// and 2xx to CONNECT; otherwise chunked, Content-Length, or until close. No allocation, no throw.
/// Thread-safety: none; one per upstream connection. Cost and lifetime: as RequestParser.
class ResponseParser {
 public:
  explicit ResponseParser(const HttpLimits& limits) noexcept : limits_(&limits) {}

  /// Call it before the response to each request.
  void begin(ResponseContext context) noexcept {
    context_ = context;
    informational_ = 0;
    cursor_ = {};
  }

  /// As RequestParser::parse_head. If `head.informational` is set, drop the bytes and call again.
  [[nodiscard]] HeadResult parse_head(std::span<const char> bytes, std::span<HeaderView> storage,
                                      ResponseHead& head) noexcept;

  [[nodiscard]] bool started() const noexcept { return cursor_.pos != 0; }

 private:
  const HttpLimits* limits_;
  HeadCursor cursor_;
  std::uint32_t informational_ = 0;
  ResponseContext context_;
};

}  // namespace weir::inline v0::http::h1
