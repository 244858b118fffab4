#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/http/method.h"

namespace weir::inline v0::upstream {

/// How the end of a request's body is found.
enum class RequestFraming : std::uint8_t { kNone, kLength, kChunked };

/// The head of a request, written once and sent by every attempt of its call.
///
/// The text is an HTTP/1.1 head without its last, empty line, because that is the form most
/// endpoints want and it can be sent as it is. Its parts are marked, so that HTTP/2 sends the same
/// fields: request line, Host, fields for every protocol, fields for HTTP/1.1 only (framing,
/// Upgrade). What differs between attempts (AttemptFields) is never written into it.
///
///   GET /a HTTP/1.1\r\n host: x\r\n accept: …\r\n … transfer-encoding: chunked\r\n
///                                   ^fields_begin   ^fields_end                 ^size
///
/// Thread-safety: immutable while attempts use it. Lifetime: that of the block with the text.
struct RequestHead {
  const char* text = nullptr;
  std::uint32_t method_size = 0;  // the method is at position 0, the path one blank after it
  std::uint32_t path_size = 0;
  std::uint32_t authority_begin = 0;
  std::uint32_t authority_size = 0;
  std::uint32_t fields_begin = 0;
  std::uint32_t fields_end = 0;
  std::uint32_t size = 0;
  http::Method method = http::Method::kGet;
  RequestFraming framing = RequestFraming::kNone;
  bool upgrade = false;
  bool trailers_accepted = false;  // "te: trailers" is among the fields
  bool http2_only = false;         // gRPC

  [[nodiscard]] std::string_view method_text() const noexcept { return {text, method_size}; }
  [[nodiscard]] std::string_view path() const noexcept {
    return {text + method_size + 1, path_size};
  }
  [[nodiscard]] std::string_view authority() const noexcept {
    return {text + authority_begin, authority_size};
  }

  /// Calls f(name, value) for each field that every protocol has, in order.
  template <class F>
  void for_each_field(F&& f) const {
    std::string_view rest(text + fields_begin, fields_end - fields_begin);
    while (!rest.empty()) {
      const std::size_t end = rest.find("\r\n");
      const std::string_view line = rest.substr(0, end);
      const std::size_t colon = line.find(": ");
      f(line.substr(0, colon), line.substr(colon + 2));
      rest.remove_prefix(end + 2);
    }
  }
};

/// The fields of a head that each attempt has of its own.
struct AttemptFields {
  std::uint32_t attempt = 1;                  // 1: not sent
  std::optional<std::uint64_t> time_left_ms;  // until the caller's deadline
  std::optional<Duration> grpc_timeout{};     // the same, of a gRPC call
};

}  // namespace weir::inline v0::upstream
