#include "policy/shuffle_shard.h"

#include <algorithm>
#include <array>
#include <bitset>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using Cards = std::bitset<ShuffleShard::kQueues>;

Cards cards_of(std::uint64_t hash) {
  Cards cards;
  for (const std::uint8_t card : ShuffleShard::deal(hash)) cards.set(card);
  return cards;
}

TEST(ShuffleShard, DealsDistinctQueues) {
  static_assert(ShuffleShard::deal(0) == ShuffleShard::Hand{0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(ShuffleShard::deal(127), (ShuffleShard::Hand{127, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ShuffleShard::deal(5 + 5 * 128), (ShuffleShard::Hand{5, 6, 0, 1, 2, 3, 4, 7}));
  Rng rng(1);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t hash = rng.next_u64();
    ASSERT_EQ(cards_of(hash).count(), ShuffleShard::kHand);
    ASSERT_EQ(ShuffleShard::first(hash), ShuffleShard::deal(hash).front());
  }
}

TEST(ShuffleShard, EveryQueueIsDealtEquallyOften) {
  Rng rng(2);
  std::array<int, ShuffleShard::kQueues> dealt{};
  constexpr int kHands = 64'000;  // 4000 times each queue, give or take 62
  for (int i = 0; i < kHands; ++i) {
    for (const std::uint8_t card : ShuffleShard::deal(rng.next_u64())) ++dealt[card];
  }
  EXPECT_GT(*std::min_element(dealt.begin(), dealt.end()), 3700);
  EXPECT_LT(*std::max_element(dealt.begin(), dealt.end()), 4300);
}

TEST(ShuffleShard, SixteenOthersCoverAHandAsOftenAsTheArithmeticSays) {
  Rng rng(3);
  int covered = 0;
  constexpr int kRounds = 20'000;
  for (int i = 0; i < kRounds; ++i) {
    Cards taken;
    for (int other = 0; other < 16; ++other) taken |= cards_of(rng.next_u64());
    if ((cards_of(rng.next_u64()) & ~taken).none()) ++covered;
  }
  EXPECT_NEAR(covered / double{kRounds}, 0.027, 0.006);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
