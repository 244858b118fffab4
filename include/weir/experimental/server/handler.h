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

namespace weir::inline v0::server {

class ServerStream;

enum class HttpVersion : std::uint8_t { k10, k11, k2 };

/// A request whose head is complete. The same for every protocol.
///
/// Lifetime: all views die when on_headers() returns; copy what is needed later.
struct ServerRequest {
  http::RequestMeta meta;
  const http::HeaderList* headers = nullptr;  // all fields, in order, pseudo-headers not among them
  io::Address peer;
  TimePoint received_at{};                   // of the turn in which the head was complete
  std::optional<std::uint64_t> body_length;  // 0 without a body; nothing when it is not known yet
  http::Method method = http::Method::kOther;
  HttpVersion version = HttpVersion::k11;
  bool expect_continue = false;  // the client waits for 100; sent as soon as a body is wanted
  bool upgrade = false;          // 101 may be answered: the stream becomes a tunnel
  bool te_trailers = false;      // response trailers will be understood
  bool secure = false;           // it came over TLS
  /// Subject of the client's verified certificate ("CN=worker-7,O=Example"); empty without one.
  std::string_view peer_certificate;
};

/// What the server calls for each stream (one request and its response), on the loop that owns the
/// connection. Order:
///
///   on_headers, on_header* , (on_body | on_trailers)*, on_complete   the request
///   on_writable*                                                     when there is room again
///   on_finished | on_abort                                           exactly one, always, last
///
/// on_body's last piece has chunk.last(); a request without body gets none at all, on_complete
/// follows at once. After 101 (or 2xx to CONNECT) the stream is a tunnel: on_body brings raw bytes,
/// chunk.last() is the peer's end. Between on_headers and the end the stream stays valid; a
/// response may be sent from any of these, or later from the loop's thread.
///
/// Views die when the callback returns. Callbacks must not block and must not throw; they may call
/// any method of the stream. Nothing is called back from inside a call into the stream, but by
/// resume()'s later turns: a handler is never re-entered.
/// Thread-safety: each loop has its own Handler, made by the factory given to Server.
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;

  virtual void on_headers(ServerStream& stream, const ServerRequest& request) = 0;
  virtual void on_header(ServerStream& stream, const http::HeaderView& header);
  virtual void on_body(ServerStream& stream, const http::BodyChunk& chunk);
  virtual void on_trailers(ServerStream& stream, const http::HeaderList& trailers);
  /// The request is complete.
  virtual void on_complete(ServerStream& stream);
  /// After kBlocked, or after send_data() took less than it was given: there is room again. Also
  /// when a paused stream's output is nearly out: time to resume() whoever feeds it.
  virtual void on_writable(ServerStream& stream);
  /// The answer to acquire_arena(ArenaWait::kQueue): the arena, or nullptr when the wait was too
  /// long (the default then answers 503).
  virtual void on_arena(ServerStream& stream, Arena* arena);
  /// The last byte of the response was handed to the kernel and the request is over.
  virtual void on_finished(ServerStream& stream);
  /// The stream died before that: client gone, deadline, broken request, reset(), shutdown.
  virtual void on_abort(ServerStream& stream, CloseReason reason);
};

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::Handler;
using server::HttpVersion;
using server::ServerRequest;
}  // namespace weir::inline v0
