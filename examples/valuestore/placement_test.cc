#include "placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace valuestore {
namespace {

std::vector<std::string> node_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("node" + std::to_string(i));
  return names;
}

ValueKey key_number(int number) {
  return ValueKey::of("key ", std::to_string(number));
}

TEST(Placement, ANodeThatJoinsTakesItsShareOfTheFirstOwnersAndMovesNoOther) {
  constexpr int kKeys = 20000;
  for (std::size_t count : {3U, 4U, 7U}) {
    const Placement before(node_names(count));
    const Placement after(node_names(count + 1));
    int moved = 0;
    for (int i = 0; i < kKeys; ++i) {
      const ValueKey key = key_number(i);
      const std::size_t old_owner = before.order(key)[0];
      const std::size_t new_owner = after.order(key)[0];
      if (new_owner == old_owner) continue;
      ++moved;
      EXPECT_EQ(new_owner, count) << "a key moves to the new node only";
    }
    const double share = static_cast<double>(moved) / kKeys;
    EXPECT_NEAR(share, 1.0 / static_cast<double>(count + 1), 0.02) << count;
  }
}

TEST(Placement, ANodeThatLeavesKeepsTheOrderOfTheOthers) {
  const Placement all(node_names(5));
  const Placement without(node_names(4));
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::size_t> expected = all.order(key_number(i));
    std::erase(expected, std::size_t{4});
    EXPECT_EQ(without.order(key_number(i)), expected);
  }
}

TEST(Placement, EachNodeOwnsAnEvenShare) {
  const Placement placement(node_names(3));
  std::map<std::size_t, int> owned;
  for (int i = 0; i < 9000; ++i) {
    for (std::size_t node = 0; node < 3; ++node) {
      if (placement.owns(node, key_number(i))) ++owned[node];
    }
  }
  for (const auto& [node, count] : owned) EXPECT_NEAR(count, 6000, 300) << node;
}

TEST(Placement, TheOrderOfTheListDoesNotMatter) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  const std::vector<std::string> turned(names.rbegin(), names.rend());
  const Placement one(names);
  const Placement other(turned);
  for (int i = 0; i < 500; ++i) {
    const auto left = one.order(key_number(i));
    const auto right = other.order(key_number(i));
    for (std::size_t at = 0; at < names.size(); ++at) {
      EXPECT_EQ(one.names()[left[at]], other.names()[right[at]]);
    }
  }
}

TEST(Placement, ANameIsFoundOrNot) {
  const Placement placement(node_names(2));
  EXPECT_EQ(placement.find("node1"), 1U);
  EXPECT_EQ(placement.find("nobody"), placement.size());
}

TEST(ValueKey, IsTheSha256OfItsBytes) {
  EXPECT_EQ(ValueKey::of("", "abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ValueKey::of("a", "bc"), ValueKey::of("ab", "c"));
  EXPECT_FALSE(ValueKey::parse("too short").has_value());
  EXPECT_EQ(ValueKey::parse(ValueKey::of("", "abc").view()), ValueKey::of("", "abc"));
}

}  // namespace
}  // namespace valuestore
