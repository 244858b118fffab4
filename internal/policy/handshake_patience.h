#pragma once

#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

struct HandshakeRule {
  Duration least = std::chrono::milliseconds(100);
  Duration most = std::chrono::seconds(1);
  std::int64_t usual_times = 8;                // the grace, in multiples of the usual time
  Duration memory = std::chrono::seconds(10);  // how long a source counts as one that stalled
};

/// What competes for the slots for handshakes.
struct SlotDemand {
  std::uint32_t slots = 1;
  std::uint32_t sources = 1;  // that hold a slot or wait for one
  Duration usual{};           // what clients need to answer; zero: not known yet
};

/// A handshake that waits for its client.
struct SlotHold {
  Duration waited{};
  std::uint32_t held = 1;  // slots of its source
};

/// The time that clients usually need to answer in a handshake: the mean, in which the last 16
/// count most.
///
/// Thread-safety: none; the owner serialises. Cost: O(1).
class UsualHandshake {
 public:
  void note(Duration took) noexcept;
  /// Zero until one was noted.
  [[nodiscard]] Duration value() const noexcept { return mean_; }

 private:
  static constexpr std::int64_t kMemory = 16;
  Duration mean_{};
  std::int64_t noted_ = 0;
};

/// How long a handshake may wait for its client while others wait for a slot:
///
///   grace    = usual_times × usual, at least `least`, at most `most`; `most` while usual is
///   unknown patience = grace, or grace × share / held for a source that holds more than its share
///   of the
///              slots; at least a quarter of `least`
///
/// A fixed time would be too short for clients far away or too long against an attack; what those
/// clients need that complete their handshakes is neither.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] Duration handshake_grace(Duration usual, const HandshakeRule& rule) noexcept;
[[nodiscard]] Duration handshake_patience(std::uint32_t held, const SlotDemand& demand,
                                          const HandshakeRule& rule) noexcept;

/// Whether it gives its slot up.
[[nodiscard]] inline bool may_lose(const SlotHold& hold, const SlotDemand& demand,
                                   const HandshakeRule& rule) noexcept {
  return hold.waited >= handshake_patience(hold.held, demand, rule);
}
/// Of two that may, which one first: of the source that holds most, then the one that waits
/// longest.
[[nodiscard]] constexpr bool loses_before(const SlotHold& a, const SlotHold& b) noexcept {
  return a.held != b.held ? a.held > b.held : a.waited > b.waited;
}
/// Whether the newest waiter of a source is served first. Once the oldest has waited this long, a
/// queue in order of arrival would only make every one wait until its client has given up.
[[nodiscard]] inline bool newest_first(Duration oldest_waited, const SlotDemand& demand,
                                       const HandshakeRule& rule) noexcept {
  return oldest_waited >= handshake_grace(demand.usual, rule);
}

/// Whose turn it is, when sources wait that stalled lately and others that did not: every
/// kStalledTurn-th turn is of those that did, so that an honest client among them is served, too.
inline constexpr std::uint32_t kStalledTurn = 4;
[[nodiscard]] constexpr bool is_stalled_turn(std::uint32_t turn) noexcept {
  return turn % kStalledTurn == kStalledTurn - 1;
}
[[nodiscard]] constexpr bool stalled_lately(Duration since, const HandshakeRule& rule) noexcept {
  return since < rule.memory;
}

}  // namespace weir::inline v0::inline policy
