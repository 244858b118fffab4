#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/result.h"
#include "weir/base/rng.h"
#include "weir/base/slab.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/limits.h"
#include "weir/experimental/io/loop.h"

#include "client_connection.h"
#include "http/h2/client_session_kit.h"
#include "pool_endpoint.h"
#include "upstream/connection_waiter.h"
#include "upstream/upstream_memory.h"
#include "waiter_queues.h"

namespace weir::inline v0::upstream {

class Upstream;

/// The connections of one loop to the endpoints of one upstream. It lends streams and takes
/// connections back; which endpoint to use and what to send is decided elsewhere.
///
/// HTTP/1.1: the idle connection that was used last, else a new one. HTTP/2: a stream of an open
/// connection, until all of its streams are used; then another connection. A waiter is served by
/// whatever becomes free first: a new connection, or one that another request gave back. If the
/// endpoints may choose HTTP/2 by ALPN, an upgrade gets a connection of its own for which HTTP/2 is
/// not offered; there is no queue for those.
///
/// The bounds (per upstream and per endpoint) hold for all loops together. If a bound is reached
/// while another loop has idle connections, that loop is asked to close one. Waiters are in the
/// outgoing queue of their endpoint (WaiterQueues): bounded, each at most for the connect timeout.
///
/// Thread-safety: its loop's thread; post_*() from any thread. Cost: no allocation for a request.
class ConnectionPool {
 public:
  struct Setup {
    io::Loop& loop;
    std::uint32_t loop_index = 0;
    Upstream& upstream;
    UpstreamMemory& memory;
    const http::HttpLimits& limits;  // of responses
    Rng rng;
  };
  explicit ConnectionPool(const Setup& setup);
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;
  ~ConnectionPool();

  struct Want {
    WaiterQueues::Entry entry{};
    bool unused_will_do = false;  // a new connection is not looked at before its first request
    bool waits = true;            // false: kNoConnection if none is ready
    bool http1 = false;           // only HTTP/1.1 will do: an upgrade
  };
  /// A stream, or nullptr if `waiter` was queued, or why there is neither.
  [[nodiscard]] Result<ClientStream*, UpstreamFailure> acquire(PoolEndpoint& endpoint,
                                                               ConnectionWaiter& waiter,
                                                               const Want& want);
  /// A connection to it has a free stream, and nobody waits for it.
  [[nodiscard]] static bool ready(const PoolEndpoint& endpoint) noexcept;
  /// The waiter does not want a stream any more; no event follows.
  void stop_waiting(ConnectionWaiter& waiter) noexcept;

  /// Connects if fewer than warm_connections exist or are being opened, and half of the upstream's
  /// places are free. For endpoints in use.
  void warm(PoolEndpoint& endpoint) noexcept;
  /// Connects to find out whether it can be reached, unless that is being tried.
  void probe(PoolEndpoint& endpoint) noexcept;
  /// Sends a PING on its HTTP/2 connections.
  void ping(PoolEndpoint& endpoint) noexcept;
  /// Closes its idle connections.
  void close_idle(PoolEndpoint& endpoint) noexcept;
  /// The same; busy ones when their streams have ended.
  void retire(PoolEndpoint& endpoint) noexcept;
  /// Closes all connections as retire() does; then stopped() becomes true.
  void stop() noexcept;
  [[nodiscard]] bool stopped() const noexcept {
    return connections_.stats().used == 0 && queues_.all_told() && !give_.queued() &&
           !serve_.queued();
  }
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_count_; }

  // From any thread: another loop needs a connection; waiters may have room now.
  void post_give() noexcept { loop_.post(give_); }
  void post_serve() noexcept { loop_.post(serve_); }

  // For its connections.
  [[nodiscard]] io::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] std::uint32_t loop_index() const noexcept { return loop_index_; }
  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] UpstreamMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const http::HttpLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] std::span<http::HeaderView> field_storage() noexcept { return fields_; }
  [[nodiscard]] const http::h2::ClientSessionKit& http2() const noexcept { return http2_; }
  /// The idle and age limits with their jitter, so that connections do not end together.
  [[nodiscard]] Duration draw_idle() noexcept;
  [[nodiscard]] Duration draw_age() noexcept;
  void on_connected(PoolEndpoint& endpoint) noexcept;
  void on_connect_failed(PoolEndpoint& endpoint, UpstreamFailure failure) noexcept;
  /// There is no memory for an HTTP/2 session.
  void on_no_session(PoolEndpoint& endpoint) noexcept;
  /// An HTTP/1.1 connection has become idle. May close it.
  void on_idle(ClientConnection& connection) noexcept;
  /// An HTTP/2 connection has no stream. May close it.
  void on_no_streams(ClientConnection& connection) noexcept;
  void leave_idle(ClientConnection& connection) noexcept;
  void on_streams_free(PoolEndpoint& endpoint) noexcept;
  void on_gone(ClientConnection& connection) noexcept;

 private:
  [[nodiscard]] ClientStream* take(PoolEndpoint& endpoint, const Want& want) noexcept;
  [[nodiscard]] bool wanted_elsewhere() const noexcept;
  [[nodiscard]] Result<ClientStream*, UpstreamFailure> acquire_http1(PoolEndpoint& endpoint,
                                                                     ConnectionWaiter& waiter,
                                                                     const Want& want) noexcept;
  [[nodiscard]] ClientStream* take_idle(PoolEndpoint& endpoint, const Want& want) noexcept;
  [[nodiscard]] UpstreamFailure connect(PoolEndpoint& endpoint, io::Access access,
                                        ConnectionWaiter* alone = nullptr) noexcept;
  [[nodiscard]] bool enough_connecting(const PoolEndpoint& endpoint) const noexcept;
  [[nodiscard]] UpstreamFailure open_more(PoolEndpoint& endpoint, io::Access access) noexcept;
  void make_room() noexcept;
  void serve();
  void serve(PoolEndpoint& endpoint) noexcept;
  void fail_waiters(PoolEndpoint& endpoint, UpstreamFailure failure) noexcept;
  void give();
  bool close_one_idle() noexcept;

  io::Loop& loop_;
  const std::uint32_t loop_index_;
  Upstream& upstream_;
  UpstreamMemory& memory_;
  const http::HttpLimits& limits_;
  Rng rng_;
  Slab<ClientConnection> connections_;
  std::vector<http::HeaderView> fields_;
  const http::h2::ClientSessionKit http2_;
  IntrusiveList<ClientConnection, &ClientConnection::all_hook> idle_;  // oldest first
  WaiterQueues queues_;
  io::Task give_;
  io::Task serve_;
  std::size_t idle_count_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::inline v0::upstream
