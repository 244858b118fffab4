#include "policy/hash_ring.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using Members = std::vector<HashRing::Member>;

Members members(std::uint64_t count) {
  Members result;
  for (std::uint64_t i = 0; i < count; ++i) result.push_back({.key = 0x1000 + i * 77});
  return result;
}

std::vector<int> keys_of_each(const HashRing& ring, std::size_t members, int keys) {
  std::vector<int> counts(members);
  Rng rng(1);
  for (int i = 0; i < keys; ++i) ++counts[ring.owner(rng.next_u64())];
  return counts;
}

TEST(HashRing, SharesAreAboutEqual) {
  const auto counts = keys_of_each(HashRing(members(10)), 10, 100'000);
  for (const int count : counts) {
    EXPECT_GT(count, 7'000);
    EXPECT_LT(count, 13'500);
  }
}

TEST(HashRing, WeightsGiveShares) {
  Members list = members(3);
  list[0].weight = 2;
  const auto counts = keys_of_each(HashRing(list), 3, 100'000);
  EXPECT_NEAR(counts[0], 50'000, 6'000);
}

TEST(HashRing, ATinyWeightStillOwnsSomething) {
  Members list = members(3);
  list[0].weight = 1e-9;
  EXPECT_GT(keys_of_each(HashRing(list), 3, 1'000'000)[0], 0);
}

TEST(HashRing, TheOrderOfMembersDoesNotMatter) {
  const Members list = members(7);
  Members reversed(list.rbegin(), list.rend());
  const HashRing ring(list);
  const HashRing other(reversed);
  Rng rng(2);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t key = rng.next_u64();
    EXPECT_EQ(list[ring.owner(key)].key, reversed[other.owner(key)].key);
  }
}

TEST(HashRing, OnlyKeysOfTheRemovedMemberMove) {
  const Members list = members(8);
  Members less = list;
  less.erase(less.begin() + 3);
  const HashRing ring(list);
  const HashRing smaller(less);
  Rng rng(3);
  int moved = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t key = rng.next_u64();
    const std::uint64_t before = list[ring.owner(key)].key;
    const std::uint64_t now = less[smaller.owner(key)].key;
    if (before == now) continue;
    EXPECT_EQ(before, list[3].key);
    ++moved;
  }
  EXPECT_GT(moved, 500);
}

TEST(HashRing, TheEndsOfTheRangeHaveAnOwner) {
  const HashRing ring(members(2));
  EXPECT_LT(ring.owner(0), 2U);
  EXPECT_LT(ring.owner(~std::uint64_t{0}), 2U);
  EXPECT_TRUE(HashRing().empty());
}

TEST(BoundedLoad, SlotsFollowTheTable) {
  EXPECT_EQ(bounded_load_max(1.25, 0, 0.1), 1U);
  EXPECT_EQ(bounded_load_max(1.25, 9, 0.1), 2U);
  EXPECT_EQ(bounded_load_max(1.25, 99, 0.1), 13U);
  EXPECT_EQ(bounded_load_max(2, 99, 0.5), 100U);
  EXPECT_EQ(bounded_load_max(2, ~std::uint64_t{0} - 1, 1), 4294967295U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
