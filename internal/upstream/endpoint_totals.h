#pragma once

#include <array>
#include <cstdint>

#include "upstream/endpoint.h"

namespace weir::inline v0::upstream {

/// What was counted for several endpoints together.
///
/// Thread-safety: a value.
struct EndpointTotals {
  std::uint64_t attempts = 0;
  std::uint64_t retries = 0;
  std::uint64_t connects = 0;
  std::uint64_t strays = 0;
  control::OutgoingStats queues;
  std::array<std::uint64_t, kUpstreamFailureCount> failures{};
  // Gauges.
  std::uint64_t connections = 0;
  std::uint64_t connecting = 0;
  std::uint64_t idle = 0;

  /// Adds what was counted for one endpoint.
  void add(const Endpoint& endpoint) noexcept;
};

inline void EndpointTotals::add(const Endpoint& endpoint) noexcept {
  using C = EndpointCounters;
  attempts += endpoint.sum([](const C& c) { return c.attempts.get(); });
  retries += endpoint.sum([](const C& c) { return c.retries.get(); });
  connects += endpoint.sum([](const C& c) { return c.connects.get(); });
  strays += endpoint.sum([](const C& c) { return c.strays.get(); });
  queues += endpoint.queue_stats();
  for (std::size_t i = 0; i < failures.size(); ++i) {
    failures[i] += endpoint.sum([i](const C& c) { return c.failures[i].get(); });
  }
  connections += endpoint.sum([](const C& c) { return c.connections.get(); });
  connecting += endpoint.sum([](const C& c) { return c.connecting.get(); });
  idle += endpoint.sum([](const C& c) { return c.idle.get(); });
}

}  // namespace weir::inline v0::upstream
