#include "counters.h"

#include <algorithm>
#include <cstddef>

namespace weir::inline v0::inline server {
namespace {

template <class Sum, std::size_t N>
void sum_up(std::array<Sum, N>& to, const std::array<LoopCounter, N>& from) noexcept {
  for (std::size_t i = 0; i < N; ++i) to[i] += from[i].get();
}

}  // namespace

void LoopCounters::add_to(ServerStats& stats) const noexcept {
  stats.read_regions.used += regions_leased.get();
  stats.read_regions.peak += regions_leased_peak.get();
  stats.backpressure.used += backpressured.get();
  stats.backpressure.peak += backpressured_peak.get();
  stats.backpressure.exhausted += backpressure_full.get();
  stats.accepted += accepted.get();
  stats.requests += requests.get();
  stats.tunnels += tunnels.get();
  stats.bytes_received += bytes_received.get();
  stats.bytes_sent += bytes_sent.get();
  stats.bytes_copied_in += bytes_moved.get();
  stats.idle_connections += idle.get();
  stats.critical_shed += critical_shed.get();
  stats.blocked_ended += blocked_ended.get();
  stats.pending_write_queue_len += pending_writes.get();
  stats.responses_1xx += responses[1].get();
  stats.responses_2xx += responses[2].get();
  stats.responses_3xx += responses[3].get();
  stats.responses_4xx += responses[4].get();
  stats.responses_5xx += responses[5].get();
  stats.h2_connections += h2_sessions.get();
  stats.h2_requests += h2_requests.get();
  stats.h2_goaways += h2_goaways.get();
  stats.h2_outbound_frames_peak =
      std::max(stats.h2_outbound_frames_peak, h2_outbound_frames_peak.get());
  stats.tls.key_updates_exceeded += key_updates_exceeded.get();
  sum_up(stats.h2_glitches, h2_glitches);
  sum_up(stats.h2_ended, h2_ended);
  sum_up(stats.h2_aborted, h2_aborted);
  sum_up(stats.tls.handshakes, handshakes);
  sum_up(stats.proxy_headers, proxy_headers);
  sum_up(stats.closed, closed);
  sum_up(stats.refused, refused);
}

void LoopCounters::take_over(const LoopCounters& other) noexcept {
  for (LoopCounter LoopCounters::*counter :
       {&LoopCounters::regions_leased_peak, &LoopCounters::backpressured_peak,
        &LoopCounters::backpressure_full, &LoopCounters::accepted, &LoopCounters::requests,
        &LoopCounters::bytes_received, &LoopCounters::bytes_sent, &LoopCounters::bytes_moved,
        &LoopCounters::critical_shed, &LoopCounters::blocked_ended,
        &LoopCounters::key_updates_exceeded, &LoopCounters::h2_sessions, &LoopCounters::h2_requests,
        &LoopCounters::h2_goaways}) {
    this->*counter += (other.*counter).get();
  }
  h2_outbound_frames_peak.set(
      std::max(h2_outbound_frames_peak.get(), other.h2_outbound_frames_peak.get()));
  sum_up(handshakes, other.handshakes);
  sum_up(proxy_headers, other.proxy_headers);
  sum_up(h2_glitches, other.h2_glitches);
  sum_up(h2_ended, other.h2_ended);
  sum_up(h2_aborted, other.h2_aborted);
  sum_up(responses, other.responses);
  sum_up(closed, other.closed);
  sum_up(refused, other.refused);
}

}  // namespace weir::inline v0::inline server
