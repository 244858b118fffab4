#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/config_error.h"
#include "weir/base/time.h"

namespace weir::inline v0::policy {

/// How near the server's fixed pools are to their bounds. Ordered: a higher level never accepts
/// what a lower one refuses.
enum class PressureLevel : std::uint8_t { kNormal, kElevated, kHigh, kCritical };

[[nodiscard]] constexpr std::string_view name_of(PressureLevel level) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"normal", "elevated", "high", "critical"};
  return kNames[static_cast<std::size_t>(level)];
}

/// The reason of a level: the fullest pool.
enum class PressureSource : std::uint8_t { kNone, kWriteSlab, kArenas, kPendingStreams, kHandles };

[[nodiscard]] constexpr std::string_view name_of(PressureSource source) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"none", "write_slab", "arenas",
                                                      "pending_streams", "handles"};
  return kNames[static_cast<std::size_t>(source)];
}

/// What the server measured at one instant. Usages are used / capacity; outside [0, 1] they are
/// clamped, and one that is no number counts as 1: an unknown pool is taken for a full one.
struct PressureState {
  double tcp_write_slab_usage = 0;
  double arena_slab_usage = 0;
  double pending_stream_usage = 0;
  double handle_slab_usage = 0;  // connections

  std::uint32_t active_connections = 0;
  std::uint32_t idle_connections = 0;  // of those, the ones without a request
  std::uint32_t backpressure_queue_len = 0;
  std::uint32_t pending_stream_count = 0;

  Duration oldest_backpressure_age{};
  Duration oldest_pending_stream_age{};
};

struct PressureConfig {
  double high_watermark = 0.85;
  double critical_watermark = 0.95;
  std::uint32_t backpressure_list_max = 1000;
  Duration backpressure_timeout = std::chrono::seconds(30);
  std::uint32_t pending_stream_pool_size = 64;
  Duration pending_stream_timeout = std::chrono::seconds(10);

  /// Where ELEVATED begins: 0.595 by default.
  [[nodiscard]] constexpr double elevated_watermark() const noexcept {
    return high_watermark * 0.7;
  }
  bool operator==(const PressureConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

struct PressureDecision {
  PressureLevel level = PressureLevel::kNormal;
  PressureSource source = PressureSource::kNone;  // kNone at kNormal

  bool accept_connection = true;
  double connection_shed_probability = 0;  // the server draws against it, in [0, 1)

  // For handlers that need an arena; streaming handlers are not concerned.
  bool accept_stream = true;
  bool use_pending_queue = false;  // not now, but it may wait for an arena

  bool drop_oldest_backpressure = false;
  bool drop_oldest_pending_stream = false;
  std::uint32_t connections_to_timeout = 0;  // longest idle first

  bool operator==(const PressureDecision&) const = default;
};

/// What the server should accept, queue and drop.
///
/// Level, from the fullest of the four pools u:
///   u < 0.7 high      NORMAL    accept all
///   u < high          ELEVATED  accept, shed (u − 0.7 high) / (0.3 high) × 0.3 of new connections
///   u < critical      HIGH      no new connections
///   u ≥ critical      CRITICAL  and drop the oldest connection waiting for a write buffer
/// Streams, from arena usage a and pending usage p: a < high accept; a < critical queue while
/// p < high, else refuse; a ≥ critical refuse. Entries older than their timeout are dropped at any
/// level.
///
/// While there are idle connections, connection usage blocks nobody: new connections are judged by
/// the other three pools, and the longest idle one makes room. (With idle_connections = 0 all four
/// count.)
///
/// connections_to_timeout, with need(line) = the fewest closures that bring connection usage below
/// the line:
///   NORMAL          0
///   ELEVATED, HIGH  need(0.7 high), at most the idle ones
///   CRITICAL        the larger of that and need(high), at least 1 and at most all: now those
///                   that made no progress for longest are closed though they are not idle
///
/// Promises: total (any numbers, valid configuration or not) and monotone: raising one usage never
/// lowers the level or the shed probability, and never turns accept_connection or accept_stream on.
/// Thread-safety: pure. Cost: O(1), no allocation; about three mutex pairs.
[[nodiscard]] PressureDecision evaluate_pressure(const PressureState& state,
                                                 const PressureConfig& config) noexcept;

}  // namespace weir::inline v0::policy

namespace weir::inline v0 {
using policy::evaluate_pressure;
using policy::name_of;
using policy::PressureConfig;
using policy::PressureDecision;
using policy::PressureLevel;
using policy::PressureSource;
using policy::PressureState;
}  // namespace weir::inline v0
