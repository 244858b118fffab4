#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/result.h"
#include "weir/base/slab.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/limits.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"

#include "io/shared_blocks.h"
#include "upstream/connection.h"
#include "upstream/exchange.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {

/// Memory that all pools of a process share: buffers for request heads and bodies, and regions that
/// responses are read into.
struct UpstreamMemory {
  /// `reserved` of each are kept for critical requests.
  UpstreamMemory(std::uint32_t requests_max, std::uint32_t connections_max,
                 std::size_t request_bytes, std::size_t region_bytes, std::uint32_t loops,
                 std::uint32_t reserved = 0);

  /// Bytes a request buffer needs: a head, later one piece of body with its framing.
  [[nodiscard]] static std::size_t request_bytes(std::size_t head_max, std::size_t piece_max) {
    return (head_max > piece_max ? head_max : piece_max) + kFramingBytes;
  }
  static constexpr std::size_t kFramingBytes = 64;

  io::SharedBlocks requests;
  io::SharedBlocks regions;
};

/// The connections of one loop to one upstream: kept alive, reused last-in-first-out, with one
/// bound for all loops together.
///
/// If the bound is reached while another loop has idle connections, an exchange is blocked (at most
/// for the connect timeout) until that loop has closed one.
/// If connecting fails, the next endpoint is tried, as often as there are endpoints (at most
/// kAttemptsMax). If a reused connection closes before the first byte of a response, the request is
/// retried once if nothing of it was written or it is repeatable (safe, no body).
/// Thread-safety: its loop's thread. Cost: no allocation after construction.
class UpstreamPool {
 public:
  static constexpr std::uint32_t kAttemptsMax = 3;

  UpstreamPool(io::Loop& loop, std::uint32_t loop_index, Upstream& upstream, UpstreamMemory& memory,
               const http::HttpLimits& response_limits);
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;
  ~UpstreamPool();

  /// Leases the exchange's buffer; false if none is free. A critical exchange may use reserved
  /// ones, here and later: also a connection, and a region for the response.
  [[nodiscard]] bool open(Exchange& exchange, io::Access access = io::Access::kOrdinary) noexcept;

  struct Start {
    http::Method method = http::Method::kGet;
    RequestFraming framing = RequestFraming::kNone;
    bool upgrade = false;
    TimePoint deadline{};               // set by the caller; zero: none
    std::optional<Duration> overall{};  // unset: the upstream's; 0: none
  };
  /// Sends the request. On failure the exchange has ended, and no event follows.
  [[nodiscard]] Result<void, UpstreamFailure> start(Exchange& exchange,
                                                    const Start& start) noexcept;

  /// Closes idle connections now and the others when their exchange ends; then stopped() is true.
  void stop() noexcept;
  [[nodiscard]] bool stopped() const noexcept {
    return connections_.stats().used == 0 && !give_.queued() && !serve_waiting_.queued();
  }

  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] io::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] std::size_t idle() const noexcept { return idle_count_; }

  // From any thread: another loop needs an idle connection; blocked exchanges may have room now.
  void post_give() noexcept { loop_.post(give_); }
  void post_serve_waiting() noexcept { loop_.post(serve_waiting_); }

 private:
  friend class UpstreamConnection;
  friend class Exchange;
  using IdleList = IntrusiveList<UpstreamConnection, &UpstreamConnection::hook>;

  [[nodiscard]] Result<void, UpstreamFailure> attempt(Exchange& exchange) noexcept;
  [[nodiscard]] UpstreamConnection* take_idle(std::uint32_t endpoint_index,
                                              const Exchange& exchange) noexcept;
  [[nodiscard]] UpstreamConnection* connect(std::uint32_t endpoint_index, io::Access access,
                                            UpstreamFailure& why) noexcept;
  void keep_idle(UpstreamConnection& connection) noexcept;
  void take_from_idle(UpstreamConnection& connection) noexcept;
  void gone(UpstreamConnection& connection) noexcept;
  /// Retries after a connection failed; ends the exchange if that is not possible.
  void retry(Exchange& exchange, UpstreamFailure failure) noexcept;
  void end(Exchange& exchange, UpstreamFailure failure) noexcept;
  void detach(Exchange& exchange) noexcept;
  /// Counts an exchange that ends because it got no connection.
  void note_unserved(UpstreamFailure failure) noexcept;
  [[nodiscard]] bool wait_for_connection(Exchange& exchange) noexcept;
  void stop_waiting(Exchange& exchange) noexcept;
  void fail_waiting(Exchange& exchange, UpstreamFailure failure) noexcept;
  bool close_one_idle() noexcept;
  void give();
  void serve_waiting();
  void on_wait_timer(TimePoint now);

  io::Loop& loop_;
  std::uint32_t loop_index_;
  Upstream& upstream_;
  UpstreamMemory& memory_;
  const http::HttpLimits& limits_;
  Slab<UpstreamConnection> connections_;
  std::vector<IdleList> idle_;  // per endpoint
  std::vector<http::HeaderView> fields_;
  IntrusiveList<Exchange, &Exchange::wait_hook_> waiting_;
  io::Task give_;
  io::Task serve_waiting_;
  io::Timer wait_timer_;
  std::size_t idle_count_ = 0;
  std::uint32_t turn_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::inline v0::upstream
