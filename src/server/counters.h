#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/http/h2_session_end.h"
#include "weir/experimental/server/close_reason.h"
#include "weir/experimental/server/stats.h"

namespace weir::inline v0::inline server {

/// A number that one loop writes and any thread reads.
class LoopCounter {
 public:
  void operator+=(std::uint64_t n) noexcept { set(get() + n); }
  void operator-=(std::uint64_t n) noexcept { set(get() - n); }
  void operator++() noexcept { *this += 1; }
  void operator--() noexcept { *this -= 1; }
  void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The counters and gauges of one loop.
struct LoopCounters {
  LoopCounter connections;  // open now
  LoopCounter idle;         // of those, between requests
  LoopCounter regions_leased;
  LoopCounter regions_leased_peak;
  LoopCounter pending_writes;  // connections blocked on the write pool
  LoopCounter backpressured;   // connections blocked on their client
  LoopCounter backpressured_peak;
  LoopCounter backpressure_full;  // connections closed because the list was full
  LoopCounter oldest_blocked_ns;  // since when it is blocked; 0: none
  LoopCounter tunnels;            // open now
  LoopCounter accepted, requests;
  LoopCounter bytes_received, bytes_sent, bytes_moved;
  LoopCounter critical_shed;
  LoopCounter blocked_ended;  // requests that were blocked on their client when places were short
  LoopCounter key_updates_exceeded;
  std::array<LoopCounter, static_cast<std::size_t>(HandshakeResult::kCount)> handshakes;
  std::array<LoopCounter, static_cast<std::size_t>(ProxyResult::kCount)> proxy_headers;
  std::array<LoopCounter, 6> responses;  // by first digit
  std::array<LoopCounter, static_cast<std::size_t>(CloseReason::kCount)> closed;
  std::array<LoopCounter, static_cast<std::size_t>(RefuseReason::kCount)> refused;
  LoopCounter h2_sessions, h2_requests, h2_goaways;
  LoopCounter h2_outbound_frames_peak;  // of any one session
  std::array<LoopCounter, http::kH2GlitchCount> h2_glitches;
  std::array<LoopCounter, http::h2::kSessionEndCount> h2_ended;
  std::array<LoopCounter, static_cast<std::size_t>(CloseReason::kCount)> h2_aborted;  // streams

  void count(CloseReason reason) noexcept { ++closed[static_cast<std::size_t>(reason)]; }
  void count(ProxyResult result) noexcept { ++proxy_headers[static_cast<std::size_t>(result)]; }
  void count(RefuseReason reason) noexcept { ++refused[static_cast<std::size_t>(reason)]; }
  void add_to(ServerStats& stats) const noexcept;
  /// Adds the counters of `other` (not its gauges, which end with its loop).
  void take_over(const LoopCounters& other) noexcept;
};

}  // namespace weir::inline v0::inline server
