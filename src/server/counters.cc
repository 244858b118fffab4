#include "counters.h"

#include <algorithm>

namespace weir::inline v0::inline server {

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
  for (std::size_t i = 0; i < h2_glitches.size(); ++i) stats.h2_glitches[i] += h2_glitches[i].get();
  for (std::size_t i = 0; i < h2_ended.size(); ++i) stats.h2_ended[i] += h2_ended[i].get();
  for (std::size_t i = 0; i < h2_aborted.size(); ++i) stats.h2_aborted[i] += h2_aborted[i].get();
  stats.tls.key_updates_exceeded += key_updates_exceeded.get();
  for (std::size_t i = 0; i < handshakes.size(); ++i) {
    stats.tls.handshakes[i] += handshakes[i].get();
  }
  for (std::size_t i = 0; i < closed.size(); ++i) stats.closed[i] += closed[i].get();
  for (std::size_t i = 0; i < refused.size(); ++i) stats.refused[i] += refused[i].get();
}

void LoopCounters::take_over(const LoopCounters& other) noexcept {
  regions_leased_peak += other.regions_leased_peak.get();
  backpressured_peak += other.backpressured_peak.get();
  backpressure_full += other.backpressure_full.get();
  accepted += other.accepted.get();
  requests += other.requests.get();
  tunnels += other.tunnels.get();
  bytes_received += other.bytes_received.get();
  bytes_sent += other.bytes_sent.get();
  bytes_moved += other.bytes_moved.get();
  critical_shed += other.critical_shed.get();
  key_updates_exceeded += other.key_updates_exceeded.get();
  for (std::size_t i = 0; i < handshakes.size(); ++i) handshakes[i] += other.handshakes[i].get();
  h2_sessions += other.h2_sessions.get();
  h2_requests += other.h2_requests.get();
  h2_goaways += other.h2_goaways.get();
  h2_outbound_frames_peak.set(
      std::max(h2_outbound_frames_peak.get(), other.h2_outbound_frames_peak.get()));
  for (std::size_t i = 0; i < h2_glitches.size(); ++i) h2_glitches[i] += other.h2_glitches[i].get();
  for (std::size_t i = 0; i < h2_ended.size(); ++i) h2_ended[i] += other.h2_ended[i].get();
  for (std::size_t i = 0; i < h2_aborted.size(); ++i) h2_aborted[i] += other.h2_aborted[i].get();
  for (std::size_t i = 0; i < responses.size(); ++i) responses[i] += other.responses[i].get();
  for (std::size_t i = 0; i < closed.size(); ++i) closed[i] += other.closed[i].get();
  for (std::size_t i = 0; i < refused.size(); ++i) refused[i] += other.refused[i].get();
}

}  // namespace weir::inline v0::inline server
