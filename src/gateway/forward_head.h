#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/rng.h"
#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/h1/serializer.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/stream.h"

#include "intent.h"
#include "route_edits.h"
#include "trust.h"
#include "upstream/request_head.h"
#include "upstream/response_head.h"

namespace weir::inline v0::gateway {

/// 32 hexadecimal digits: the id for a request that has none.
class RequestId {
 public:
  static constexpr std::size_t kBytes = 32;
  [[nodiscard]] static RequestId draw(Rng& rng) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), kBytes}; }

 private:
  std::array<char, kBytes> text_{};
};

/// The field with which an endpoint shows that it has read the key of a WebSocket request.
inline constexpr std::string_view kWebSocketAccept = "sec-websocket-accept";

/// What the gateway adds to a request.
struct ForwardPlan {
  const Caller& caller;
  const Intent& intent;
  const RouteEdits& edits;
  std::string_view path{};  // as edits.path_for() has it
  Forwarded forwarded = Forwarded::kSet;
  std::string_view request_id{};     // written if the request has none
  std::string_view fallback_host{};  // for an HTTP/1.0 request without Host
  bool upgrade = false;              // it asks for a WebSocket connection, and may
  std::string_view websocket_key{};  // the gateway's own, instead of the client's
};

/// Writes the head of a request for the upstream.
///
///   removed    hop-by-hop fields (the fixed ones and those that Connection names), Expect, all
///              x-weir fields, forwarding fields of an untrusted sender; also with '_' for '-',
///              because many applications cannot tell them apart
///   written    Host, the framing that the body has, Via, x-forwarded-for and -proto, x-request-id,
///              and the x-weir fields whose values are trusted
///   edited     path, host and fields, as the route says
///   unchanged  everything else, in order
///
/// Promises: the output parses as exactly one head (HeadWriter). No allocation.
///
/// The attempt's number and the time that is left are not part of it: they differ from attempt to
/// attempt.
[[nodiscard]] Result<upstream::RequestHead, http::h1::WriteError> write_request_head(
    std::span<char> out, const ServerRequest& request, const ForwardPlan& plan);

/// Bytes that write_request_head() may add to a head of `head_bytes_max`.
inline constexpr std::size_t kForwardHeadRoom = 512;

/// The fields of a response for the client, without the hop-by-hop fields of the upstream; the
/// server adds framing and connection fields. x-request-id is the upstream's, else `request_id`
/// unless that is empty. `storage` has at least head.headers.size() + kResponseFieldsAdded entries.
///
/// The head that begins a tunnel for an HTTP/2 client (`in_http2`) has neither Upgrade nor
/// Sec-WebSocket-Accept (RFC 8441 §5.1).
[[nodiscard]] std::span<const ResponseField> response_fields(const upstream::ResponseHead& head,
                                                             std::string_view request_id,
                                                             const RouteEdits& edits,
                                                             std::span<ResponseField> storage,
                                                             bool in_http2 = false);
inline constexpr std::size_t kResponseFieldsAdded = 3 + RouteRewrite::kFieldsMax;

/// Trailers that may be forwarded, in either direction.
[[nodiscard]] bool may_forward_trailer(const http::HeaderView& field) noexcept;

}  // namespace weir::inline v0::gateway
