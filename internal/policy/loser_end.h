#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// How an attempt that is not needed any more is ended on the wire; a label of metrics.
enum class LoserEnd : std::uint8_t {
  kReset,   // HTTP/2: RST_STREAM with CANCEL. The endpoint learns at once that it may stop
  kDrain,   // its answer is read and thrown away; the connection is kept
  kClose,   // HTTP/1.1: the connection is closed, which is the only way to say stop
  kFinish,  // it may finish, to measure how much time the hedge saved
};
WEIR_ENUM_NAMES(LoserEnd, "reset", "drain", "close", "finish")

/// Servers close the connection of a client that resets many streams, since that is an attack
/// (rapid reset). Limits in use: 200 resets in 30 s; 1000 and 33 a second; half of 500 streams.
/// This pace stays below all of them: at most 60 + 3 × 30 = 150 in any 30 s, and none while
/// resets are more than a third of the connection's streams.
struct CancelPaceRules {
  std::uint32_t burst = 60;
  std::uint32_t per_second = 3;
  std::uint32_t streams_per_reset = 3;
  std::uint64_t streams_free = 60;     // the share is judged from this many streams on
  std::uint64_t drain_bytes = 65'536;  // HTTP/1.1: a longer rest is not worth reading
  /// HTTP/2: an answer that is read and dropped has this much time; then its stream is reset.
  Duration drain_max = std::chrono::seconds(1);
};

/// What one connection has reset. Plain numbers of its owner.
struct CancelPace {
  std::uint64_t streams = 0;  // opened on the connection
  std::uint64_t resets = 0;
  double tokens = -1;  // below 0: full, nothing was reset yet
  TimePoint updated_at{};
};

struct LoserFacts {
  bool multiplexed = false;  // HTTP/2
  /// Bytes of the answer that are still to come; nullopt: not known, the head has not arrived.
  std::optional<std::uint64_t> bytes_left{};
};

/// How to end a loser; counts the reset if it is one.
///
/// HTTP/2: reset within the pace, otherwise drain. HTTP/1.1: drain what is known to be short,
/// otherwise close: the endpoint may be working for long, and the connection would be blocked.
///
/// Promises: in any time t at most burst + per_second × t resets. Thread-safety: pure, apart from
/// `pace`. Cost: O(1).
[[nodiscard]] inline LoserEnd end_of_loser(const LoserFacts& loser, CancelPace& pace,
                                           const CancelPaceRules& rules, TimePoint now) noexcept {
  if (!loser.multiplexed) {
    const bool is_short = loser.bytes_left && *loser.bytes_left <= rules.drain_bytes;
    return is_short ? LoserEnd::kDrain : LoserEnd::kClose;
  }
  const double burst = rules.burst;
  const Duration elapsed = std::max(now - pace.updated_at, Duration::zero());
  const double refill = to_seconds(elapsed) * rules.per_second;
  pace.tokens = pace.tokens < 0 ? burst : std::min(burst, pace.tokens + refill);
  pace.updated_at = std::max(pace.updated_at, now);
  const bool too_many = pace.streams >= rules.streams_free &&
                        (pace.resets + 1) * rules.streams_per_reset > pace.streams;
  if (pace.tokens < 1 || too_many) return LoserEnd::kDrain;
  pace.tokens -= 1;
  ++pace.resets;
  return LoserEnd::kReset;
}

}  // namespace weir::inline v0::inline policy
