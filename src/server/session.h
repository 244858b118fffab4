#pragma once

#include "weir/base/time.h"
#include "weir/experimental/server/close_reason.h"

namespace weir::inline v0::server {

/// The protocol on a connection (a TLS handshake, HTTP/1, HTTP/2): takes bytes from the
/// connection's input, calls the handler, puts bytes into the connection's output.
///
/// The connection drives it: advance, flush, on_flushed, again while they say so. It never closes
/// the connection itself: it asks (Connection::fail, Connection::finish).
class Session {
 public:
  /// Uses the input as far as it can. True: something was done, call again after a flush.
  [[nodiscard]] virtual bool advance(TimePoint now) = 0;
  /// After a flush, complete or not. True: something was done, flush again.
  [[nodiscard]] virtual bool on_flushed(TimePoint now) = 0;
  /// The peer ended its side.
  virtual void on_end_of_input(TimePoint now) = 0;
  /// The peer ended its side, or broke, while nothing was read.
  virtual void on_disconnected(TimePoint now) = 0;
  /// The connection dies: every open stream is told. Once.
  virtual void end_streams(CloseReason reason) = 0;

  /// More input would be used now.
  [[nodiscard]] virtual bool wants_input() const noexcept = 0;
  /// Between requests: may be closed without hurting any_waiting.
  [[nodiscard]] virtual bool idle() const noexcept = 0;
  /// When the request began whose head is not complete; TimePoint::max() if there is none.
  [[nodiscard]] virtual TimePoint head_since() const noexcept { return TimePoint::max(); }
  /// No request has come yet.
  [[nodiscard]] virtual bool unused() const noexcept = 0;
  /// Its work may use reserved places.
  [[nodiscard]] virtual bool critical() const noexcept = 0;
  /// A handler waits for room in the output.
  [[nodiscard]] virtual bool wants_room() const noexcept = 0;
  /// When on_deadline() is due; TimePoint::max() for never.
  [[nodiscard]] virtual TimePoint deadline() const noexcept = 0;
  virtual void on_deadline(TimePoint now) = 0;
  /// The server drains: no further request after those under way.
  virtual void on_drain() = 0;

 protected:
  ~Session() = default;
};

}  // namespace weir::inline v0::server
