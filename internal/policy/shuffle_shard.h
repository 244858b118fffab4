#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::inline v0::inline policy {

/// Deals a hand of distinct queues to the hash of an actor (shuffle sharding): two actors may have
/// one queue in common and hardly ever all of them. With 128 queues and hands of 8, sixteen others
/// that each fill their whole hand cover all queues of an actor with a probability of 0.027.
///
/// Promises: the same hash gives the same hand; every hand is equally likely to within 1 %.
/// Thread-safety: holds no state. Cost: O(hand²), about 50 ns.
struct ShuffleShard {
  static constexpr std::size_t kQueues = 128;
  static constexpr std::size_t kHand = 8;
  using Hand = std::array<std::uint8_t, kHand>;

  /// deal(hash).front(), for a tenth of the cost.
  [[nodiscard]] static constexpr std::uint8_t first(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(hash % kQueues);
  }
  [[nodiscard]] static constexpr Hand deal(std::uint64_t hash) noexcept {
    Hand hand{};
    Hand sorted{};
    for (std::size_t i = 0; i < kHand; ++i) {
      const std::uint64_t left = kQueues - i;
      auto card = static_cast<std::uint8_t>(hash % left);  // among those not dealt yet
      hash /= left;
      std::size_t at = 0;
      for (; at < i && card >= sorted[at]; ++at) ++card;
      std::copy_backward(sorted.begin() + at, sorted.begin() + i, sorted.begin() + i + 1);
      sorted[at] = card;
      hand[i] = card;
    }
    return hand;
  }
};

}  // namespace weir::inline v0::inline policy
