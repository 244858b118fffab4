#pragma once

#include <cstdint>

#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// How close the server's fixed pools are to their bounds. Ordered: a higher level never accepts
/// what a lower level refuses.
enum class PressureLevel : std::uint8_t { kNormal, kElevated, kHigh, kCritical };

WEIR_ENUM_NAMES(PressureLevel, "normal", "elevated", "high", "critical")

/// The reason for a level: the fullest pool.
enum class PressureSource : std::uint8_t { kNone, kWriteSlab, kArenas, kPendingStreams, kHandles };

WEIR_ENUM_NAMES(PressureSource, "none", "write_slab", "arenas", "pending_streams", "handles")

/// What the server measured. A usage is used / capacity, clamped to [0, 1]. A usage that is not a
/// number counts as 1: a pool with unknown usage is treated as full.
struct PressureState {
  double tcp_write_slab_usage = 0;
  double arena_slab_usage = 0;
  double pending_stream_usage = 0;
  double handle_slab_usage = 0;  // connections

  std::uint32_t active_connections = 0;
  std::uint32_t idle_connections = 0;  // of those, without a request in progress
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
  // At CRITICAL, a client that moved bytes within this time is not closed; in the server, a
  // connection whose head takes longer counts as idle.
  Duration stall_grace{};

  /// Where ELEVATED begins: 0.595 by default.
  [[nodiscard]] constexpr double elevated_watermark() const noexcept {
    return high_watermark * 0.7;
  }
  bool operator==(const PressureConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// An idle connection is not closed within this time after its last answer, because its next
/// request may arrive soon.
inline constexpr Duration kJustAnswered = std::chrono::milliseconds(50);

struct PressureDecision {
  PressureLevel level = PressureLevel::kNormal;
  PressureSource source = PressureSource::kNone;  // kNone at kNormal

  bool accept_connection = true;
  double connection_shed_probability = 0;  // the server draws a number in [0, 1) for each

  // For handlers that need an arena; streaming handlers are not affected.
  bool accept_stream = true;
  bool use_pending_queue = false;  // the stream may be pending until an arena is free

  bool drop_oldest_backpressure = false;
  bool drop_oldest_pending_stream = false;
  std::uint32_t connections_to_timeout = 0;     // longest idle first, then longest stalled
  Duration idle_at_least = kJustAnswered;       // close only those idle for at least this long
  Duration stalled_at_least = Duration::max();  // or stalled for at least this long

  bool operator==(const PressureDecision&) const = default;
};

/// What the server should accept, queue and drop.
///
/// Level, from the fullest of the four pools u:
///   u < 0.7 high      NORMAL    accept all
///   u < high          ELEVATED  accept, shed (u − 0.7 high) / (0.3 high) × 0.3 of new connections
///   u < critical      HIGH      no new connections
///   u ≥ critical      CRITICAL  also drop the connection that is blocked longest on the write pool
///                               if its output has not moved for stall_grace
/// Streams, from arena usage a and pending usage p: a < high accept; a < critical queue while
/// p < high, else refuse; a ≥ critical refuse. Entries older than their timeout, and those beyond
/// backpressure_list_max, are dropped at any level, the oldest first: act, then evaluate again.
///
/// While there are idle connections, connection usage does not stop new ones: only the other three
/// pools count for them, and the longest idle connection is closed. (With idle_connections = 0 all
/// four pools count.)
///
/// connections_to_timeout, where need(x) is the smallest number of closures that brings connection
/// usage below x:
///   NORMAL          0
///   ELEVATED, HIGH  need(0.7 high), at most the idle ones
///   CRITICAL        the larger of that and need(high), at least 1 and at most all: if closing idle
///                   connections is not enough, connections blocked on their client that made no
///                   progress for stall_grace are closed too, the longest blocked first
/// idle_at_least is 1 s at ELEVATED, else kJustAnswered.
///
/// Promises: total (any numbers, valid configuration or not) and monotone: raising one usage never
/// lowers the level or the shed probability, and never turns accept_connection or accept_stream on.
/// Thread-safety: pure. Cost: O(1), no allocation; about three mutex pairs.
[[nodiscard]] PressureDecision evaluate_pressure(const PressureState& state,
                                                 const PressureConfig& config) noexcept;

}  // namespace weir::inline v0::inline policy
