#pragma once

#include <cstdint>
#include <span>

#include "weir/experimental/http/header_view.h"

#include "http/h2/header_block.h"
#include "http/h2/session_base.h"

namespace weir::inline v0::http::h2 {

/// Events, called by a session from inside receive(), produce() and write_data(). Any of them may
/// call any method of the session, except receive(), and from on_stream_end() also except produce()
/// and write_data().
///
/// For each accepted stream: on_request, (on_body | on_trailers)*, on_stream_end, in this order.
/// Views are valid until the callback returns.
class SessionEvents : public StreamEvents {
 public:
  /// A complete, checked head. Returns the owner's pointer for this stream. nullptr refuses it; the
  /// reset tells the peer that it may retry.
  [[nodiscard]] virtual void* on_request(StreamId id, const RequestHead& head) = 0;
  /// The protocol has finished the stream. Call release() when the work for it has ended too.
  virtual void on_stream_end(StreamId id, void* user, StreamEnd end, ErrorCode code) = 0;

 protected:
  ~SessionEvents() = default;
};

/// The head of a response. 1xx heads may precede the final one; `end` with a 1xx is an error.
struct ResponseStart {
  std::uint16_t status = 200;
  std::span<const Field> fields;
  bool end = false;  // no body follows
};

/// The server's side of one HTTP/2 connection. The codec behind it can be replaced.
///
/// Promises, thread-safety, cost, lifetime: see SessionBase.
class Session : public SessionBase {
 public:
  [[nodiscard]] virtual SubmitStatus submit_head(StreamId id, const ResponseStart& start) = 0;

  /// announce_shutdown() tells the peer to open no new stream; those that it has already sent are
  /// still served. shut_down(), called later, names the last stream and accepts no new one.
  virtual void announce_shutdown() = 0;
};

}  // namespace weir::inline v0::http::h2
