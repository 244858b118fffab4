#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"

#include "policy/loser_end.h"
#include "policy/send_again.h"
#include "upstream/failure.h"
#include "upstream/request_head.h"
#include "upstream/response_head.h"

namespace weir::inline v0::upstream {

/// Why a stream ended without a complete response, as far as the wire shows it.
struct StreamFailure {
  UpstreamFailure failure = UpstreamFailure::kNone;
  policy::Processed processed = policy::Processed::kMaybe;
  bool written = false;  // at least one byte of the request was accepted by the kernel
  bool reused = false;   // the connection had served another request before
};

/// Events of one ClientStream, on its loop. Each may cancel the stream; then no event follows.
/// Order: on_stream_head (informational ones first), on_stream_body*, on_stream_trailers?,
/// on_stream_complete; on_stream_failed may end it at any point.
class ClientStreamEvents {
 public:
  /// False: not accepted; reading stops, and the same head is delivered again after resume().
  [[nodiscard]] virtual bool on_stream_head(const ResponseHead& head) = 0;
  /// Returns how many bytes were accepted; if fewer than given, reading stops until resume().
  [[nodiscard]] virtual std::size_t on_stream_body(std::string_view bytes) = 0;
  /// False: as for the head.
  [[nodiscard]] virtual bool on_stream_trailers(const http::HeaderList& trailers) = 0;
  /// Asked directly after a part of the body was not accepted: how many of the bytes that are left
  /// were stored for later. For the stream they are accepted. Must not cancel it.
  [[nodiscard]] virtual std::size_t keep_body(std::string_view bytes) noexcept = 0;
  /// The same for trailers.
  [[nodiscard]] virtual bool keep_trailers(const http::HeaderList& trailers) noexcept = 0;
  virtual void on_stream_complete() = 0;
  /// The head is sent, or send() would accept bytes again.
  virtual void on_stream_writable() = 0;
  virtual void on_stream_failed(const StreamFailure& failure) = 0;

 protected:
  ~ClientStreamEvents() = default;
};

/// One request on a connection to an endpoint, in HTTP/1.1 or HTTP/2.
///
/// Use: start() once, then send() and send_trailers() for the body. It buffers no request bytes:
/// what it does not accept stays with the caller, who offers it again after on_stream_writable().
/// Promises: after cancel() or the last event it is not used again; its connection decides whether
/// it can carry another request.
/// Thread-safety: its loop's thread. Lifetime: from the pool that lends it to its last event.
class ClientStream {
 public:
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  /// Sends the head. `head` must stay valid until an event says that the stream has ended.
  virtual void start(const RequestHead& head, const AttemptFields& fields,
                     ClientStreamEvents& events) noexcept = 0;
  /// Instead of start(): it is given back unused.
  virtual void decline() noexcept = 0;
  [[nodiscard]] virtual bool is_http2() const noexcept = 0;
  /// Returns how many of the bytes were accepted. `last`: they end the body, once all of them are
  /// accepted; with no bytes left to offer, call it with none.
  [[nodiscard]] virtual std::size_t send(std::string_view bytes, bool last) noexcept = 0;
  /// Ends the body with trailers: lines "name: value\r\n". Returns how many bytes of them were
  /// accepted, as send(); the body has ended when all are. Not for a body with a length.
  [[nodiscard]] virtual std::size_t send_trailers(std::string_view lines) noexcept = 0;
  /// Delivers what was not accepted, and reads on.
  virtual void resume() noexcept = 0;
  /// Ends it without further events. HTTP/2: RST_STREAM; HTTP/1.1: the connection is closed, unless
  /// the rest of the response is small enough to be read and dropped.
  virtual void cancel() noexcept = 0;
  /// Ends it without further events, because another attempt answered; how: policy::LoserEnd.
  virtual policy::LoserEnd lose() noexcept = 0;
  /// The request is sent: from now on events go to `events`, and the head is not needed.
  virtual void hand_over(ClientStreamEvents& events) noexcept = 0;
  /// A byte of the request may have left, or will.
  [[nodiscard]] virtual bool may_have_sent() const noexcept = 0;
  /// The end of the request was accepted.
  [[nodiscard]] virtual bool request_ended() const noexcept = 0;
  /// The whole request has reached the kernel.
  [[nodiscard]] virtual bool request_sent() const noexcept = 0;
  /// Something was not accepted, and resume() has not been called.
  [[nodiscard]] virtual bool paused() const noexcept = 0;
  /// When a byte was last sent or received.
  [[nodiscard]] virtual TimePoint progress_at() const noexcept = 0;

 protected:
  ClientStream() = default;
  ~ClientStream() = default;
};

}  // namespace weir::inline v0::upstream
