#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/base/enum_names.h"
#include "weir/base/owned_count.h"
#include "weir/experimental/metrics/histogram.h"

#include "local_answer.h"
#include "token_verifier.h"
#include "tunnel.h"

namespace weir::inline v0::gateway {

using Count = OwnedCount;  // written by its loop

/// Which side ended a request early.
enum class EndedBy : std::uint8_t { kClient, kUpstream, kServer };
WEIR_ENUM_NAMES(EndedBy, "client", "upstream", "server")

/// The directions of a tunnel.
inline constexpr std::array<std::string_view, 2> kTunnelWays = {"to_client", "to_upstream"};

/// Histogram bounds for the gateway's own processing time, in seconds: 10 µs to 100 ms.
inline constexpr std::array<double, 12> kOwnTimeBoundsSeconds = {
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1};

/// What one loop counted for one upstream.
struct UpstreamCounters {
  static constexpr std::size_t kStatusClasses = 5;  // 1xx to 5xx

  std::array<Count, kStatusClasses> answered;
  std::array<Count, GatewayReason::kCount> refused;
  std::array<Count, kEndedByNames.size()> aborted;
  std::array<Count, 4> outcomes;  // as reported to the limiter
  Count no_room;  // admitted, and answered 503 because a pool of the gateway was empty
  Count tunnels_opened;
  std::array<Count, kTunnelEndNames.size()> tunnels_ended;
  std::array<Count, kTunnelWays.size()> tunnel_bytes;
  metrics::Histogram duration{metrics::kDurationBoundsSeconds};
  metrics::Histogram latency{metrics::kDurationBoundsSeconds};
};

/// What one loop counted apart from its upstreams.
struct LoopCounters {
  Count received;
  Count critical_shed;  // critical requests that the gateway itself refused; must stay 0
  std::atomic<std::uint32_t> proxied{0};       // in progress
  std::atomic<std::uint32_t> proxied_peak{0};  // maximum since start
  std::atomic<std::uint32_t> proxied_exhausted{0};
  metrics::Histogram refusal{kOwnTimeBoundsSeconds};
  TokenCounters tokens;
  UpstreamCounters none;  // requests that matched no route
};

/// The sums over all loops that pages and status lines show.
/// Requests received = answered + refused + aborted + active.
struct RequestTotals {
  std::uint64_t received = 0;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint64_t aborted = 0;
  std::uint64_t critical_shed = 0;

  void add(const UpstreamCounters& more) noexcept;
  void add(const LoopCounters& more) noexcept;
  /// The counters are read one after the other, so the ends may exceed the beginnings.
  [[nodiscard]] std::uint64_t active() const noexcept {
    const std::uint64_t ended = answered + refused + aborted;
    return received > ended ? received - ended : 0;
  }
};

}  // namespace weir::inline v0::gateway
