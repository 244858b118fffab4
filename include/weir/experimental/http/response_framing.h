#pragma once

#include <cstdint>
#include <optional>

#include "weir/experimental/http/method.h"

namespace weir::inline v0::http {

/// What delimits the body of a response, as its head announces it.
enum class ResponseFraming : std::uint8_t {
  kNone,        // nothing is announced, no body can follow
  kLength,      // content-length
  kChunked,     // transfer-encoding: chunked
  kUntilClose,  // the end of the connection
  kFrames,      // HTTP/2's own framing
  kTunnel,      // raw bytes both ways
};

/// How a protocol delimits a body whose length is not known: HTTP/1.0, HTTP/1.1, HTTP/2.
enum class OpenEnded : std::uint8_t { kUntilClose, kChunked, kFrames };

struct ResponseFacts {
  Method method = Method::kGet;  // of the request
  unsigned status = 200;
  std::optional<std::uint64_t> length{};  // of the body, if the handler knows it
  OpenEnded open_ended = OpenEnded::kChunked;
  bool last = false;     // the handler sends nothing after this call
  bool upgrade = false;  // the request asked for a protocol that 101 may select
};

struct ResponsePlan {
  ResponseFraming framing = ResponseFraming::kNone;
  std::uint64_t length = 0;   // for kLength
  bool body_follows = false;  // bytes come after the head
};

/// 1xx, 204 and 304 end with their head (RFC 9110 §6.4.1).
[[nodiscard]] constexpr bool never_has_body(unsigned status) noexcept {
  return status < 200 || status == 204 || status == 304;
}

/// The same rule for HTTP/1 and HTTP/2 (RFC 9112 §6.3, RFC 9113 §8.1). The response to HEAD
/// announces the framing that GET would have, if it is known, and no body follows.
///
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr ResponsePlan plan_response(const ResponseFacts& facts) noexcept {
  const bool connected =
      facts.method == Method::kConnect && facts.status >= 200 && facts.status < 300;
  if (connected || (facts.status == 101 && facts.upgrade)) {
    return {.framing = ResponseFraming::kTunnel, .length = 0, .body_follows = true};
  }
  const bool head = facts.method == Method::kHead;
  const bool unknown = head && facts.last && !facts.length;
  if (never_has_body(facts.status) || unknown) return {};
  const bool in_frames = facts.open_ended == OpenEnded::kFrames;
  if (facts.length || (facts.last && !in_frames)) {
    const std::uint64_t length = facts.length.value_or(0);
    return {
        .framing = ResponseFraming::kLength, .length = length, .body_follows = length > 0 && !head};
  }
  const ResponseFraming framing = in_frames ? ResponseFraming::kFrames
                                  : facts.open_ended == OpenEnded::kChunked
                                      ? ResponseFraming::kChunked
                                      : ResponseFraming::kUntilClose;
  return {.framing = framing, .length = 0, .body_follows = !head};
}

/// A head may be the whole response, unless it announces bytes that would then be missing.
[[nodiscard]] constexpr bool may_be_whole(const ResponsePlan& plan) noexcept {
  return !plan.body_follows || plan.framing != ResponseFraming::kLength;
}

}  // namespace weir::inline v0::http
