#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"

#include "http/h2/header_block.h"
#include "http/h2/session_base.h"

namespace weir::inline v0::http::h2 {

/// Whether the server has acted on a request. It decides whether the request may be sent again.
enum class Processed : std::uint8_t {
  kNo,     // never: its head was not sent, GOAWAY excludes it, or it was refused before any answer
  kMaybe,  // its head was sent, and nothing says more
  kYes,    // a head was received for it, a 1xx included
};

/// Events, called by a client session from inside receive(), produce() and write_data(). Any of
/// them may call any method of the session, except receive(), and from on_stream_end() also except
/// produce() and write_data().
///
/// For each opened stream, in this order: on_response (any number of 1xx up to a bound, then one
/// final head), (on_body | on_trailers)*, on_stream_end. Any prefix of it may be followed by
/// on_stream_end. Views are valid until the callback returns.
class ClientEvents : public StreamEvents {
 public:
  virtual void on_response(StreamId id, void* user, const ResponseHead& head) = 0;
  /// The protocol has finished the stream. Call release() when the work for it has ended too.
  ///
  /// kDone: the response is complete, whatever ended the stream then; `code` is that of a
  /// RST_STREAM after it, or kNoError. kPeerReset: the server reset the stream, or its GOAWAY
  /// excludes it; `code` is the one in that frame, whatever it was. kReset: by reset(), or because
  /// the response was invalid, or because the server lowered its limit of streams before the head
  /// was sent (kRefusedStream).
  virtual void on_stream_end(StreamId id, void* user, StreamEnd end, ErrorCode code,
                             Processed processed) = 0;
  /// SETTINGS or GOAWAY arrived, or the session sends GOAWAY itself: capacity() may have changed.
  virtual void on_capacity_changed() = 0;
  /// The answer to ping(), which was called at `sent`.
  virtual void on_pong(TimePoint sent) = 0;

 protected:
  ~ClientEvents() = default;
};

/// The head of a request. Names are sent in lower case. Neither Host nor a field that concerns one
/// HTTP/1.1 connection is allowed in `fields`; of TE only "trailers". CONNECT is not supported. A
/// head that would need more than a quarter of the session's memory is refused (kBadField).
struct RequestStart {
  std::string_view method;
  std::string_view scheme;     // "http" or "https"
  std::string_view authority;  // empty: not sent
  std::string_view path;       // with the query; "*" for OPTIONS *
  std::span<const Field> fields;
  bool end = false;  // no body follows
};

/// The client's side of one HTTP/2 connection. The codec behind it can be replaced.
///
/// The connection preface and SETTINGS are queued when it is created, and requests may be opened at
/// once: before the server's SETTINGS, at most ClientOptions::streams_before_settings_max.
///
/// Bodies of responses: each stream starts with a window of H2Limits::stream_window_bytes, which
/// counts as granted: the owner must have room for that many bytes of each response it asks for, or
/// set it to 0. grant() opens the stream's window further. The connection's window (at least 16
/// times that of a stream) is returned as bytes leave the session, so a stream whose owner grants
/// nothing does not stop the others. Bytes for a stream that was reset are discarded.
///
/// A response may be complete before the request is. on_body() has then delivered all of it, and
/// the stream stays open until the owner ends the request, or gives it up with reset(kNoError).
///
/// An invalid response (RFC 9113 §8.1.1, a wrong content-length, more than the limits allow) ends
/// its stream with kReset: a head or trailer section with a fault is never delivered. A server that
/// floods the session, or breaks the framing, ends the session. After a session has ended there is
/// no on_stream_end(): the owner asks processed() for each of its streams.
///
/// Promises, thread-safety, cost, lifetime: see SessionBase. And: no request is queued beyond the
/// server's limit of streams.
class ClientSession : public SessionBase {
 public:
  /// Opens a stream; its head is queued. `user` is passed to its events. Errors: kClosed while
  /// capacity() is 0, otherwise as for submit_trailers().
  [[nodiscard]] virtual Result<StreamId, SubmitStatus> open(const RequestStart& start,
                                                            void* user) = 0;

  /// How many streams could be opened now: the smallest of what the server's limit, our
  /// concurrent_streams_max and the numbers of this connection leave. 0 once GOAWAY was sent or
  /// received, or the session has ended. It grows again when a stream has ended and was released,
  /// and may become 0 with streams open, if the server lowers its limit.
  [[nodiscard]] virtual std::uint32_t capacity() const noexcept = 0;
  /// The server's SETTINGS have arrived.
  [[nodiscard]] virtual bool has_settings() const noexcept = 0;
  /// The server's limit of streams; before its SETTINGS, the number that is assumed.
  [[nodiscard]] virtual std::uint32_t peer_streams_max() const noexcept = 0;
  /// The server accepts extended CONNECT (RFC 8441). Sending it is not supported yet.
  [[nodiscard]] virtual bool peer_allows_extended_connect() const noexcept = 0;
  /// The code of the server's last GOAWAY.
  [[nodiscard]] virtual std::optional<ErrorCode> peer_goaway_code() const noexcept = 0;

  /// What is known about a stream now, in any state of the session: for the streams of a connection
  /// that was lost. kNo for a stream that is unknown.
  [[nodiscard]] virtual Processed processed(StreamId id) const noexcept = 0;

  /// Queues a PING. False if one is unanswered, or the session has ended. When it is useful
  /// (streams are open, and nothing was heard for a while) is the owner's decision, as is the time
  /// to wait.
  [[nodiscard]] virtual bool ping(TimePoint now) = 0;
  /// When the unanswered PING was queued; zero: there is none.
  [[nodiscard]] virtual TimePoint ping_sent() const noexcept = 0;
};

}  // namespace weir::inline v0::http::h2
