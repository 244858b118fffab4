#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/server/arena.h"
#include "weir/experimental/server/close_reason.h"

namespace weir::inline v0::inline server {

class ServerStream;

enum class HttpVersion : std::uint8_t { k10, k11, k2 };

/// A request whose head is complete. The same for every protocol.
///
/// Lifetime: all views are valid until on_headers() returns; copy what is needed later.
struct ServerRequest {
  http::RequestMeta meta;
  const http::HeaderList* headers = nullptr;  // all fields in order, without pseudo-headers
  io::Address peer;                           // of the socket, or as its PROXY header announces it
  TimePoint received_at{};                    // when the head was complete
  std::optional<std::uint64_t> body_length;   // 0 without a body; nullopt if not known yet
  http::Method method = http::Method::kOther;
  HttpVersion version = HttpVersion::k11;
  bool expect_continue = false;  // the client expects 100 Continue; sent when the body is read
  /// The stream may become a tunnel: by 101, or by 200 if meta.protocol is set (HTTP/2).
  bool upgrade = false;
  bool te_trailers = false;  // the client accepts response trailers
  bool secure = false;       // received over TLS
  /// A proxy forwards it and does not say for whom: `peer` is the proxy, and proves nothing.
  bool client_unknown = false;
  /// Subject of the client's verified certificate ("CN=worker-7,O=Example"); empty without one.
  std::string_view peer_certificate;
};

/// The callbacks of the server for each stream (one request and its response), on the loop that
/// owns the connection. Order:
///
///   on_headers, on_header* , (on_body | on_trailers)*, on_complete   the request
///   on_writable*                                                     when there is room again
///   on_finished | on_abort                                           exactly one, as the last
///
/// The last on_body has chunk.last(). A request without a body gets no on_body; on_complete follows
/// at once. After 101 (or 2xx to CONNECT) the stream is a tunnel: on_body has raw bytes, and
/// chunk.last() means that the peer ended its side. The stream is valid from on_headers to the end;
/// a response may be sent from any of these callbacks, or later on the loop's thread.
///
/// Views are valid until the callback returns. Callbacks must not block or throw; they may call any
/// method of the stream. A call into the stream never calls the handler back (resume() does so
/// later, in another turn), so a handler is never re-entered.
/// Thread-safety: each loop has its own Handler, made by the factory given to Server.
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;

  /// Asked before on_headers() when only places reserved for critical work are left: whether this
  /// request may take one. By default it may if its peer is critical (Server::set_critical_peers).
  [[nodiscard]] virtual bool is_critical(const ServerRequest&, bool critical_peer) {
    return critical_peer;
  }
  virtual void on_headers(ServerStream& stream, const ServerRequest& request) = 0;
  virtual void on_header(ServerStream&, const http::HeaderView&) {}
  virtual void on_body(ServerStream&, const http::BodyChunk&) {}
  virtual void on_trailers(ServerStream&, const http::HeaderList&) {}
  /// The request is complete.
  virtual void on_complete(ServerStream&) {}
  /// There is room again after kBlocked, or after send_data() took less than it was given. Also
  /// called when the output of a paused stream is almost sent, so that its source can be resumed.
  virtual void on_writable(ServerStream&) {}
  /// The result of acquire_arena(ArenaWait::kQueue): the arena, or nullptr if the stream was
  /// pending for too long (the default implementation then answers 503).
  virtual void on_arena(ServerStream& stream, Arena* arena);
  /// The kernel has accepted the last byte of the response, and the request has ended.
  virtual void on_finished(ServerStream&) {}
  /// The stream ended earlier: client disconnected, timeout, invalid request, reset(), shutdown.
  virtual void on_abort(ServerStream&, CloseReason) {}
};

}  // namespace weir::inline v0::inline server
