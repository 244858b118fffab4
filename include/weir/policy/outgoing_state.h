#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// How full the queue to one destination is. Ordered: a later state is fuller.
///   kHealthy    below 70 %
///   kThrottled  from 70 %
///   kBatching   from 85 %
///   kOverflow   from 95 %, or the overflow ring is in use
///   kSaturated  the ring is full
enum class OutgoingState : std::uint8_t { kHealthy, kThrottled, kBatching, kOverflow, kSaturated };
WEIR_ENUM_NAMES(OutgoingState, "healthy", "throttled", "batching", "overflow", "saturated")
inline constexpr std::size_t kOutgoingStateCount = kOutgoingStateNames.size();

/// Which delays are advised.
enum class AdviceProfile : std::uint8_t {
  kMonotone,  // 0, 50, 200, 200, 500 ms: never faster when it gets worse
  kSeed,      // 0, 50, 200, 100, 500 ms
};
WEIR_ENUM_NAMES(AdviceProfile, "monotone", "seed")

/// What a sender should do before its next item for this destination.
struct OutgoingAdvice {
  Duration delay{};
  bool batch_only = false;  // send several items as one
  bool operator==(const OutgoingAdvice&) const = default;
};

[[nodiscard]] constexpr OutgoingAdvice advice_of(OutgoingState state,
                                                 AdviceProfile profile) noexcept {
  constexpr std::array<std::array<int, kOutgoingStateCount>, 2> kDelaysMs = {
      {{0, 50, 200, 200, 500}, {0, 50, 200, 100, 500}}};
  const int ms = kDelaysMs[static_cast<std::size_t>(profile)][static_cast<std::size_t>(state)];
  return {.delay = std::chrono::milliseconds(ms), .batch_only = state >= OutgoingState::kBatching};
}

/// What the queue to one destination holds, and may hold. Critical items are not counted.
struct OutgoingFill {
  std::uint32_t primary = 0;
  std::uint32_t primary_max = 0;
  std::uint32_t ring = 0;
  std::uint32_t ring_max = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_max = 0;

  /// The larger of both parts, in permille: items of the primary queue, bytes of all.
  [[nodiscard]] constexpr std::uint32_t permille() const noexcept {
    return static_cast<std::uint32_t>(std::max(part(primary, primary_max), part(bytes, bytes_max)));
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t part(std::uint64_t used,
                                                    std::uint64_t max) noexcept {
    if (max == 0) return 1000;
    const std::uint64_t held = std::min(used, max);
    // Exact for small numbers; for huge ones the divisor is scaled, not the product.
    return held <= UINT64_MAX / 1000 ? held * 1000 / max : std::min(held / (max / 1000), kFull);
  }
  static constexpr std::uint64_t kFull = 1000;
};

/// The state after a put or a get. A fuller state is entered at once; it is left only when the fill
/// is 5 points below the threshold (the ring: 5 % of its size), so that the state does not flap.
///
/// Promises: total; at least the state that the fill alone means; monotone in the fill and in
/// `before`; equal fills give equal states from then on. Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr OutgoingState outgoing_state(OutgoingState before,
                                                     const OutgoingFill& fill) noexcept {
  struct Threshold {
    OutgoingState state;
    std::uint32_t permille;
  };
  constexpr std::array<Threshold, 3> kThresholds = {{{OutgoingState::kOverflow, 950},
                                                     {OutgoingState::kBatching, 850},
                                                     {OutgoingState::kThrottled, 700}}};
  constexpr std::uint32_t kHysteresis = 50;
  const bool ring_used = fill.ring > 0;
  const std::uint64_t ring_slack =
      before == OutgoingState::kSaturated ? fill.ring_max * kHysteresis / 1000 : 0;
  const bool full = fill.ring_max > 0 ? ring_used && fill.ring + ring_slack >= fill.ring_max
                                      : fill.primary >= fill.primary_max;
  if (full) return OutgoingState::kSaturated;
  if (ring_used) return OutgoingState::kOverflow;
  const std::uint32_t permille = fill.permille();
  for (const Threshold& threshold : kThresholds) {
    const std::uint32_t slack = before >= threshold.state ? kHysteresis : 0;
    if (permille + slack >= threshold.permille) return threshold.state;
  }
  return OutgoingState::kHealthy;
}

}  // namespace weir::inline v0::inline policy
