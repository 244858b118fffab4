#pragma once

#include <cstdint>

#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/header_view.h"

namespace weir::inline v0::upstream {

/// The protocol spoken with an endpoint.
enum class WireProtocol : std::uint8_t { kHttp1, kHttp2 };

/// The head of a response, the same for HTTP/1.1 and HTTP/2.
///
/// Lifetime: views are valid until the callback returns.
struct ResponseHead {
  http::HeaderList headers;
  http::h1::BodyFraming body;  // HTTP/2 without a length: kUntilClose, until the stream ends
  unsigned status = 0;
  bool http10 = false;         // the endpoint answered in HTTP/1.0
  bool informational = false;  // 1xx except 101: the final head follows
  bool tunnel = false;         // 101: what follows is not HTTP
  WireProtocol protocol = WireProtocol::kHttp1;
};

}  // namespace weir::inline v0::upstream
