#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weir/base/intrusive_list.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/io/timer.h"

#include "h1_wire.h"
#include "io/shared_blocks.h"
#include "io/tls_transport.h"
#include "io/transport.h"
#include "upstream/client_stream.h"

namespace weir::inline v0::upstream {

class ConnectionPool;
class ConnectionWaiter;
class H2Wire;
struct PoolEndpoint;

/// One connection to an endpoint: socket, transport (cleartext or TLS) and the protocol on it.
///
///   state        meaning                                   leaves by
///   kConnecting  TCP                                       connected → kHandshake or kOpen
///   kHandshake   TLS; ALPN decides the protocol            done → kOpen
///   kOpen        HTTP/1.1 or HTTP/2                        close()
///   kClosing     until the socket is closed                –
///
/// Thread-safety: its loop's thread. Lifetime: in its pool's slab, until the socket is closed.
class ClientConnection final : private io::SocketEvents {
 public:
  ClientConnection(ConnectionPool& pool, PoolEndpoint& endpoint) noexcept;
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;
  ~ClientConnection();

  /// `fd` is connecting. `timeout` covers the TLS handshake too.
  [[nodiscard]] Result<void, io::IoError> open(io::Fd fd, Duration timeout);
  /// With open(): this waiter alone gets its stream, and HTTP/2 is not offered.
  void belong_to(ConnectionWaiter& waiter) noexcept;
  /// The waiter that it belongs to, which it forgets; nullptr: none.
  ConnectionWaiter* release_waiter() noexcept;

  /// A stream for the next request, or nullptr if it has none free.
  [[nodiscard]] ClientStream* take_stream() noexcept;
  /// take_stream() would return one.
  [[nodiscard]] bool has_stream() const noexcept;
  [[nodiscard]] bool multiplexed() const noexcept { return h2_ != nullptr; }
  /// Of an idle HTTP/1.1 connection: nothing was received, not even an end. Costs a system call.
  [[nodiscard]] bool still_quiet() noexcept;
  /// Closes it when its streams have ended; an idle one at once.
  void retire() noexcept;
  /// Closes it now; its streams have ended. `orderly`: nothing is cut off.
  void close(bool orderly = true) noexcept;
  /// Asks for a sign of life (HTTP/2: PING). HTTP/1.1 has none.
  void ping() noexcept;

  [[nodiscard]] PoolEndpoint& endpoint() const noexcept { return endpoint_; }
  /// No request was sent on it.
  [[nodiscard]] bool unused() const noexcept { return h2_ == nullptr && h1_.requests() == 0; }
  [[nodiscard]] bool closing() const noexcept { return state_ == State::kClosing; }
  [[nodiscard]] bool connecting() const noexcept {
    return state_ == State::kConnecting || state_ == State::kHandshake;
  }

  // For the protocol on it.
  [[nodiscard]] io::Transport& transport() noexcept { return *transport_; }
  [[nodiscard]] bool secure() const noexcept { return tls_.has_value(); }
  [[nodiscard]] io::Loop& loop() noexcept { return socket_.loop(); }
  [[nodiscard]] TimePoint now() noexcept;
  [[nodiscard]] ConnectionPool& pool() noexcept { return pool_; }
  void update_watch() noexcept;
  /// Reads again later in this turn: other connections have their turn first.
  void read_again() noexcept;
  /// Calls H2Wire::on_flush() at the end of this turn.
  void flush_later() noexcept;
  /// A byte arrived.
  void heard() noexcept;
  [[nodiscard]] char* acquire_region() noexcept;
  void release_region(char* region) noexcept;
  /// Bytes of an answer arrived that nobody needs any more.
  void note_discarded(std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t region_bytes() const noexcept;
  [[nodiscard]] std::span<http::HeaderView> field_storage() noexcept;
  /// The stream of HTTP/1.1 has ended.
  void on_stream_over(bool reusable) noexcept;
  /// A stream of HTTP/2 has ended, or streams became free.
  void on_streams_free() noexcept;
  /// An idle connection has input: it ended, or sent what nobody asked for.
  void close_idle() noexcept;
  /// A cancelled response: reads its rest, but not for long.
  void discard_rest() noexcept;
  /// A stream was cancelled in the middle: closes with a reset, so that the kernel drops what the
  /// endpoint has not read.
  void abandon() noexcept;
  /// No new streams: the endpoint said GOAWAY.
  void set_retiring() noexcept { retiring_ = true; }
  void set_access(io::Access access) noexcept { access_ = access; }
  void arm(TimePoint at) noexcept;
  void disarm() noexcept;

  ListHook<ClientConnection> idle_hook;  // in the endpoint's idle list
  ListHook<ClientConnection> open_hook;  // in the endpoint's list of HTTP/2 connections
  ListHook<ClientConnection> all_hook;   // in the pool's idle list, of all endpoints and protocols

 private:
  enum class State : std::uint8_t { kConnecting, kHandshake, kOpen, kClosing };

  void on_readable() override;
  void on_writable() override;
  void on_disconnected() override;
  void on_timer(TimePoint now);
  void on_closed();
  void on_read_again();
  void on_flush();
  void on_connected() noexcept;
  void continue_handshake() noexcept;
  void open_protocol(bool http2) noexcept;
  void connect_failed(UpstreamFailure failure) noexcept;
  void become_idle() noexcept;
  [[nodiscard]] bool too_old() const noexcept;

  ConnectionPool& pool_;
  PoolEndpoint& endpoint_;
  io::Socket socket_;
  io::PlainTransport plain_;
  std::optional<io::TlsTransport> tls_;
  io::Transport* transport_;
  io::Timer timer_;
  io::Task read_again_;
  io::Task flush_;
  H1Wire h1_;
  H2Wire* h2_ = nullptr;
  TimePoint retire_at_{};
  State state_ = State::kConnecting;
  io::Access access_ = io::Access::kOrdinary;
  ConnectionWaiter* waiter_ = nullptr;
  bool http1_only_ = false;
  bool retiring_ = false;
  bool socket_closed_ = false;
};

}  // namespace weir::inline v0::upstream
