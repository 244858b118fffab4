#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/local_peer.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/close_reason.h"

#include "h1/h1_session.h"
#include "io/tls_stream.h"
#include "io/transport.h"
#include "memory/conn_read_buf.h"
#include "memory/outbox.h"
#include "memory/read_regions.h"
#include "proxy_entry.h"
#include "rate_guard.h"
#include "session.h"

namespace weir::inline v0::inline server {

class H2Session;
class LoopShard;
class TlsEntry;

/// One accepted socket: transport below, session above, and between them input, output, deadlines.
///
/// It reads when the session can use input, runs the session, flushes once per round, and then
/// updates what to watch, which lists it is in, and its timer. Sessions and handlers end it with
/// fail() or finish(); it ends when no call into it is active any more.
///
/// Thread-safety: its loop's thread. Lifetime: a place in the server's slab, from accept until the
/// socket has reported that it is closed.
class Connection final : public io::SocketEvents {
 public:
  struct Arrival {
    io::Address peer;
    bool critical = false;
    bool tls = false;
    bool proxied = false;  // it begins with a PROXY header
  };
  /// Who sends its requests, after its PROXY header.
  struct Sender {
    io::Address address;
    bool unknown = false;  // `address` is that of the proxy
  };
  Connection(LoopShard& shard, const Arrival& arrival) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The protocol of the peer: found from its first bytes, or agreed on before them.
  enum class Protocol : std::uint8_t { kUndecided, kHttp1, kHttp2 };

  /// On the shard's loop. False: the kernel refused the socket; discard the connection.
  [[nodiscard]] bool open(io::Fd fd);

  // For the session.
  [[nodiscard]] ConnReadBuf& input() noexcept { return input_; }
  [[nodiscard]] Outbox& output() noexcept { return output_; }
  [[nodiscard]] const Outbox& output() const noexcept { return output_; }
  [[nodiscard]] LoopShard& shard() const noexcept { return shard_; }
  [[nodiscard]] io::Transport& transport() noexcept { return *transport_; }
  [[nodiscard]] const io::Address& peer() const noexcept { return peer_; }
  [[nodiscard]] std::optional<io::LocalPeer> local_peer() const {
    if (proxied_) return std::nullopt;
    return io::local_peer_of(socket_.fd());
  }
  [[nodiscard]] bool client_unknown() const noexcept { return client_unknown_; }
  [[nodiscard]] io::Access access() const noexcept { return access_; }
  [[nodiscard]] bool critical() const noexcept { return session_->critical(); }
  [[nodiscard]] bool unused() const noexcept { return session_->unused(); }
  [[nodiscard]] TimePoint opened_at() const noexcept { return opened_at_; }
  /// The connection ends as soon as no call into it is active.
  void fail(CloseReason reason) noexcept;
  [[nodiscard]] bool failed() const noexcept { return ending_ != CloseReason::kNone; }
  /// The connection ends when its output is sent. With `linger`, input is read and discarded until
  /// the peer has received the output: closing with unread bytes would reset the connection.
  struct CloseMode {
    CloseReason reason = CloseReason::kFinished;
    bool linger = false;
  };
  void finish(CloseMode close_mode) noexcept;
  [[nodiscard]] bool finishing() const noexcept { return close_mode_.reason != CloseReason::kNone; }
  /// drive() later in this turn, unless it runs now.
  void schedule() noexcept;
  /// Closing sends a reset, so that an incomplete response does not look complete.
  void reset_on_close() noexcept { socket_.reset_on_close(); }

  // For the transport, before any byte was read: the protocol that ALPN chose. After that, HTTP/1
  // reads a preface as a request, and HTTP/2 does not accept a request as a preface.
  void begin_http1() noexcept { protocol_ = Protocol::kHttp1; }
  void begin_http2();
  [[nodiscard]] Protocol protocol() const noexcept { return protocol_; }
  // For the TLS handshake.
  [[nodiscard]] io::Socket& socket() noexcept { return socket_; }
  void use(io::Transport& transport) noexcept { transport_ = &transport; }
  void use_cleartext() noexcept { transport_ = &plain_; }
  /// The PROXY header is complete: TLS begins, or HTTP, with what came after it.
  void end_proxy_header(const Sender& sender);
  /// The handshake is done: starts HTTP with the protocol agreed on.
  void begin_http(io::TlsProtocol agreed);

  // For the shard.
  [[nodiscard]] bool tls() const noexcept { return tls_; }
  [[nodiscard]] bool begins_in_stage() const noexcept { return tls_ || proxied_; }
  void drive();
  void resume_output(WriteBuffer* handed);  // with as many buffers as it needs
  void close_now(CloseReason reason);
  void drain();
  [[nodiscard]] TimePoint blocked_since() const noexcept { return blocked_since_; }
  [[nodiscard]] TimePoint idle_since() const noexcept { return idle_since_; }
  /// When bytes were last received or sent.
  [[nodiscard]] TimePoint progress_at() const noexcept { return progress_at_; }
  /// A request is in progress that cannot continue until the peer sends or reads something.
  [[nodiscard]] bool waits_for_peer() const noexcept {
    return !closed_ && (blocked_ || session_->awaits_peer());
  }
  /// Place-time that the client has wasted, as Session::blocked_time(); all requests are behind if
  /// the client does not read the connection at all. Zero while a call into it is active.
  [[nodiscard]] Duration blocked_time(TimePoint now) const noexcept;
  /// Ends requests that waste time, worst first, or the connection if no request can be ended
  /// alone. Returns how many requests have ended.
  std::uint32_t end_blocked(std::uint32_t count, TimePoint now);
  /// When the head, preface or ClientHello that is not complete began; TimePoint::max() if there is
  /// none.
  [[nodiscard]] TimePoint incomplete_since() const noexcept;
  void settle_lists(TimePoint now);

  bool source_counted = false;  // by the connection table, under its mutex
  ListHook<Connection> all_hook;
  ListHook<Connection> idle_hook;
  bool idle_as_newcomer = false;  // idle_hook is in the shard's list silent_, otherwise in idle_
  ListHook<Connection> incomplete_hook;
  ListHook<Connection> blocked_hook;  // blocked on the client
  ListHook<Connection> writer_hook;   // blocked on one write buffer …
  ListHook<Connection> several_hook;  // … or on several at once

 private:
  void on_readable() override;
  void on_writable() override;
  void on_disconnected() override;
  void on_timer(TimePoint now);
  void on_gone();

  [[nodiscard]] bool fill_input(TimePoint now);
  void discard_input();
  /// A PROXY header or a TLS handshake comes first.
  [[nodiscard]] bool before_http() const noexcept;
  /// False while the first bytes may become a preface.
  [[nodiscard]] bool decide_protocol();
  void rounds(TimePoint now);
  void flush(TimePoint now);
  void settle(TimePoint now);
  void settle_deadline();
  void attach_region();
  void leave_stage();
  void release_region();
  void end(CloseReason reason);
  void start_linger(TimePoint now);

  LoopShard& shard_;
  io::Socket socket_;
  io::PlainTransport plain_;
  io::Transport* transport_;
  H1Session h1_;
  ProxyEntry proxy_;
  TlsEntry* entry_ = nullptr;  // of a connection to a TLS listener
  Session* session_;
  H2Session* h2_ = nullptr;
  ConnReadBuf input_;
  ReadRegion region_;
  Outbox output_;
  RateGuard write_guard_;
  io::Timer timer_;
  io::Task work_;
  TimePoint opened_at_{};
  TimePoint blocked_since_{};
  TimePoint idle_since_{};
  TimePoint progress_at_{};
  TimePoint linger_until_{};
  std::uint64_t moved_ = 0;  // bytes sent since the last settle
  io::Address peer_;
  CloseMode close_mode_{.reason = CloseReason::kNone, .linger = false};
  CloseReason ending_ = CloseReason::kNone;
  io::Access access_;
  Protocol protocol_ = Protocol::kUndecided;
  bool driving_ = false;
  bool closed_ = false;  // the connection has ended …
  bool gone_ = false;    // … and the loop has released the socket
  bool lingering_ = false;
  bool backlog_ = false;  // the session has not processed all input
  bool blocked_ = false;  // blocked on the socket: a write returned kAgain
  bool half_closed_ = false;
  bool tls_;
  bool proxied_;
  bool client_unknown_ = false;
  bool staged_ = false;  // the region is a small one, for a PROXY header or a ClientHello
};

}  // namespace weir::inline v0::inline server
