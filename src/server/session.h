#pragma once

#include <cstdint>

#include "weir/base/time.h"
#include "weir/experimental/server/close_reason.h"

namespace weir::inline v0::inline server {

/// The protocol on a connection (TLS handshake, HTTP/1, HTTP/2): reads the connection's input,
/// calls the handler, and writes the connection's output.
///
/// The connection calls advance, flush and on_flushed, again while they return true. The session
/// does not close the connection itself: it calls Connection::fail or Connection::finish.
class Session {
 public:
  /// Processes the input as far as possible. True: progress was made; call again after a flush.
  [[nodiscard]] virtual bool advance(TimePoint now) = 0;
  /// Called after a flush, complete or not. True: progress was made; flush again.
  [[nodiscard]] virtual bool on_flushed(TimePoint now) = 0;
  /// The peer ended its side.
  virtual void on_end_of_input(TimePoint now) = 0;
  /// The peer ended its side, or the connection was reset, while reads were off.
  virtual void on_disconnected(TimePoint now) = 0;
  /// The connection ends: every open stream is aborted. Called once.
  virtual void end_streams(CloseReason reason) = 0;

  /// Whether it can process more input now.
  [[nodiscard]] virtual bool wants_input() const noexcept = 0;
  /// Whether there is no request in progress, so that the connection may be closed.
  [[nodiscard]] virtual bool idle() const noexcept = 0;
  /// A request is in progress that cannot continue until the peer sends more of it or reads more of
  /// its response. False while a handler works on it, and in a tunnel.
  [[nodiscard]] virtual bool awaits_peer() const noexcept { return false; }
  /// Place-time that the client has wasted: the sum, over the requests in progress that are not
  /// critical, of how far each is behind the minimum rate. Zero in a tunnel.
  [[nodiscard]] virtual Duration blocked_time(TimePoint) const noexcept { return {}; }
  /// The requests in progress.
  [[nodiscard]] virtual std::uint32_t requests_open() const noexcept { return 0; }
  /// Ends up to `count` requests that waste time, the worst first, and returns how many. If it can
  /// end none alone, the connection must be closed. Not while a call into the session is active.
  virtual std::uint32_t end_blocked(std::uint32_t, TimePoint) { return 0; }
  /// When the incomplete head began; TimePoint::max() if there is none.
  [[nodiscard]] virtual TimePoint head_since() const noexcept { return TimePoint::max(); }
  /// Whether no request has arrived yet.
  [[nodiscard]] virtual bool unused() const noexcept = 0;
  /// Whether it may use reserved places.
  [[nodiscard]] virtual bool critical() const noexcept = 0;
  /// Whether a handler is blocked on room in the output.
  [[nodiscard]] virtual bool wants_room() const noexcept = 0;
  /// When on_deadline() is due; TimePoint::max() for never.
  [[nodiscard]] virtual TimePoint deadline() const noexcept = 0;
  virtual void on_deadline(TimePoint now) = 0;
  /// The server drains: accept no further requests after those in progress.
  virtual void on_drain() = 0;

 protected:
  ~Session() = default;
};

}  // namespace weir::inline v0::inline server
