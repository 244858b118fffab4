#include "policy/handshake_patience.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr HandshakeRule kHandshakeRule;

TEST(HandshakePatience, TheGraceFollowsWhatClientsUsuallyNeed) {
  struct Row {
    Duration usual;
    Duration grace;
  };
  const Row rows[] = {
      {Duration(0), seconds(1)},             // nothing is known: nobody is cut early
      {milliseconds(1), milliseconds(100)},  // a local network
      {milliseconds(12), milliseconds(100)},
      {milliseconds(13), milliseconds(104)},
      {milliseconds(100), milliseconds(800)},  // another continent
      {milliseconds(125), seconds(1)},
      {seconds(9), seconds(1)},
      {Duration::max(), seconds(1)},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(handshake_grace(row.usual, kHandshakeRule), row.grace) << row.usual.count();
  }
}

TEST(HandshakePatience, ASourceAboveItsShareHasLess) {
  struct Row {
    std::uint32_t held;
    std::uint32_t sources;
    Duration patience;
  };
  // 64 slots; the grace is 800 ms.
  const Row rows[] = {
      {64, 1, milliseconds(800)},    // alone: there is nobody to be unfair to
      {32, 2, milliseconds(800)},    // its share
      {64, 2, milliseconds(400)},    // twice its share
      {60, 5, milliseconds(160)},    // 60 of the 12 that are its share
      {1, 1000, milliseconds(800)},  // many sources with one each
      {64, 1000, milliseconds(25)},  // at least a quarter of `least`
      {0, 0, milliseconds(800)},
  };
  for (const Row& row : rows) {
    const SlotDemand demand{.slots = 64, .sources = row.sources, .usual = milliseconds(100)};
    EXPECT_EQ(handshake_patience(row.held, demand, kHandshakeRule), row.patience)
        << row.held << " of " << row.sources;
  }
}

TEST(HandshakePatience, TheSourceThatHoldsMostLosesFirstThenTheOneThatWaitsLongest) {
  const SlotHold many{.waited = milliseconds(1), .held = 9};
  const SlotHold old{.waited = seconds(9), .held = 2};
  const SlotHold young{.waited = seconds(1), .held = 2};
  EXPECT_TRUE(loses_before(many, old));
  EXPECT_FALSE(loses_before(old, many));
  EXPECT_TRUE(loses_before(old, young));
  EXPECT_FALSE(loses_before(young, young));
}

TEST(HandshakePatience, NewestFirstOnceTheOldestHasWaitedForTheGrace) {
  const SlotDemand demand{.usual = milliseconds(50)};
  EXPECT_FALSE(newest_first(milliseconds(399), demand, kHandshakeRule));
  EXPECT_TRUE(newest_first(milliseconds(400), demand, kHandshakeRule));
}

TEST(HandshakePatience, PatienceIsBoundedAndNeverGrowsWithWhatASourceHolds) {
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    const SlotDemand demand{.slots = static_cast<std::uint32_t>(1 + rng.below(5000)),
                            .sources = static_cast<std::uint32_t>(rng.below(5000)),
                            .usual = Duration(rng.below(2'000'000'000))};
    Duration before = Duration::max();
    for (std::uint32_t held = 0; held < demand.slots; held += 1 + held) {
      const Duration patience = handshake_patience(held, demand, kHandshakeRule);
      EXPECT_GE(patience, kHandshakeRule.least / 4);
      EXPECT_LE(patience, kHandshakeRule.most);
      EXPECT_LE(patience, before);
      before = patience;
    }
  }
}

TEST(HandshakePatience, TheOneThatLosesIsAWorstOneInAnyOrder) {
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<SlotHold> holds(1 + rng.below(40));
    for (SlotHold& hold : holds) {
      hold = {.waited = milliseconds(rng.below(5)),
              .held = static_cast<std::uint32_t>(rng.below(4))};
    }
    const SlotHold worst = *std::min_element(holds.begin(), holds.end(), loses_before);
    for (const SlotHold& hold : holds) EXPECT_FALSE(loses_before(hold, worst));
  }
}

TEST(HandshakePatience, OneTurnInFourIsOfSourcesThatStalledLately) {
  int theirs = 0;
  for (std::uint32_t turn = 0; turn < 400; ++turn) theirs += is_stalled_turn(turn) ? 1 : 0;
  EXPECT_EQ(theirs, 100);
  EXPECT_FALSE(is_stalled_turn(0)) << "others go first";
  EXPECT_TRUE(stalled_lately(seconds(9), kHandshakeRule));
  EXPECT_FALSE(stalled_lately(seconds(10), kHandshakeRule));
}

TEST(UsualHandshake, FollowsWhatItIsTold) {
  UsualHandshake usual;
  EXPECT_EQ(usual.value(), Duration(0));
  usual.note(milliseconds(200));
  EXPECT_EQ(usual.value(), milliseconds(200)) << "the first counts whole";
  for (int i = 0; i < 200; ++i) usual.note(milliseconds(2));
  EXPECT_LT(usual.value(), milliseconds(3));
  for (int i = 0; i < 200; ++i) usual.note(Duration(0));
  EXPECT_GT(usual.value(), Duration(0)) << "zero is for: nothing is known";
}

}  // namespace
}  // namespace weir::inline v0::inline policy
