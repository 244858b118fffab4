// Holders and what they hold: caps, room for new identities, collisions, lists, threads.
#include "budget_table.h"

#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using Charge = BudgetTable::Charge;
using Charged = BudgetTable::Charged;

constexpr BudgetCaps kCaps{.count_max = 3, .bytes_max = 100};
constexpr std::uint64_t kWordBytes = kActorBytesMax;

/// The identity with this hash, so that tests choose its bucket.
Identity who(std::uint64_t low, std::uint64_t high = 1, std::string_view label = {}) {
  return {.key = {.low = low, .high = high}, .label = label};
}

TEST(BudgetTable, CountsAndBytesAreChargedTogetherUpToTheirCaps) {
  BudgetTable table(64);
  const Charged first = table.charge(who(7), 60, kCaps, false);
  ASSERT_EQ(first.result, Charge::kOk);
  EXPECT_EQ(table.charge(who(7), 41, kCaps, false).result, Charge::kBytes);
  const Charged second = table.charge(who(7), 40, kCaps, false);
  EXPECT_EQ(second.result, Charge::kOk);
  EXPECT_EQ(second.entry, first.entry);
  EXPECT_EQ(table.charge(who(7), 0, kCaps, false).result, Charge::kOk);
  EXPECT_EQ(table.charge(who(7), 0, kCaps, false).result, Charge::kCount);
  EXPECT_EQ(table.charge(who(8), 100, kCaps, false).result, Charge::kOk);
  table.give_back(first.entry, 60);
  EXPECT_EQ(table.charge(who(7), 60, kCaps, false).result, Charge::kOk);
}

TEST(BudgetTable, ARefusalTakesNothing) {
  BudgetTable table(64);
  EXPECT_EQ(table.charge(who(7), 101, kCaps, false).result, Charge::kBytes);
  EXPECT_EQ(table.charge(who(7), ~std::uint64_t{0}, kCaps, false).result, Charge::kBytes);
  EXPECT_EQ(table.charge(who(7), 0, {.count_max = 0, .bytes_max = 9}, false).result,
            Charge::kCount);
  EXPECT_TRUE(table.idle());
}

TEST(BudgetTable, CapsAreReadLive) {
  BudgetTable table(64);
  const std::uint32_t entry = table.charge(who(7), 50, kCaps, false).entry;
  EXPECT_EQ(table.charge(who(7), 0, {.count_max = 1, .bytes_max = 100}, false).result,
            Charge::kCount);
  EXPECT_EQ(table.charge(who(7), 1, {.count_max = 9, .bytes_max = 40}, false).result,
            Charge::kBytes);
  EXPECT_FALSE(table.grow(entry, 1, 40));
  EXPECT_TRUE(table.grow(entry, 450, 500));
  table.give_back(entry, 500);
  EXPECT_TRUE(table.idle());
}

TEST(BudgetTable, GrowAndShrinkMoveBytesAndNotTheCount) {
  BudgetTable table(64);
  const std::uint32_t entry = table.charge(who(7), 10, kCaps, false).entry;
  EXPECT_TRUE(table.grow(entry, 90, 100));
  EXPECT_FALSE(table.grow(entry, 1, 100));
  EXPECT_FALSE(table.grow(entry, ~std::uint64_t{0}, ~std::uint64_t{0}));
  table.shrink(entry, 30);
  EXPECT_EQ(table.top(1).at(0).bytes, 70U);
  EXPECT_EQ(table.top(1).at(0).in_flight, 1U);
  table.give_back(entry, 70);
}

TEST(BudgetTable, AForcedChargePassesTheCapsAndSaysWhich) {
  BudgetTable table(64);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 10};
  const Charged inside = table.charge(who(7), 10, kOne, true);
  EXPECT_EQ(inside.over, Charge::kOk);
  const Charged by_count = table.charge(who(7), 0, kOne, true);
  EXPECT_EQ(by_count.result, Charge::kOk);
  EXPECT_EQ(by_count.over, Charge::kCount);
  const Charged by_bytes = table.charge(who(7), 1, {.count_max = 9, .bytes_max = 10}, true);
  EXPECT_EQ(by_bytes.result, Charge::kOk);
  EXPECT_EQ(by_bytes.over, Charge::kBytes);
  EXPECT_EQ(table.top(1).at(0).in_flight, 3U);
  EXPECT_EQ(table.top(1).at(0).bytes, 11U);
}

TEST(BudgetTable, AForcedChargeStopsWhereTheWordIsFull) {
  BudgetTable table(64);
  const Charged all = table.charge(who(7), kWordBytes, kCaps, true);
  ASSERT_EQ(all.result, Charge::kOk);
  const Charged beyond = table.charge(who(7), 1, kCaps, true);
  EXPECT_EQ(beyond.result, Charge::kBytes);
  EXPECT_EQ(beyond.entry, BudgetTable::kNoEntry);
  EXPECT_FALSE(table.grow(all.entry, 1, ~std::uint64_t{0}));
  table.give_back(all.entry, kWordBytes);
  for (std::uint32_t i = 0; i < kClassUnitsMax; ++i) {
    ASSERT_EQ(table.charge(who(7), 0, kCaps, true).result, Charge::kOk);
  }
  EXPECT_EQ(table.charge(who(7), 0, kCaps, true).entry, BudgetTable::kNoEntry);
  EXPECT_EQ(table.top(1).at(0).in_flight, kClassUnitsMax);
  for (std::uint32_t i = 0; i < kClassUnitsMax; ++i) table.give_back(all.entry, 0);
  EXPECT_TRUE(table.idle());
}

TEST(BudgetTable, IdentitiesThatShareHalfOfTheirHashAreTwo) {
  BudgetTable table(64);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 0};
  EXPECT_EQ(table.charge(who(7, 1), 0, kOne, false).result, Charge::kOk);
  EXPECT_EQ(table.charge(who(7, 2), 0, kOne, false).result, Charge::kOk);
  EXPECT_EQ(table.charge(who(7, 1), 0, kOne, false).result, Charge::kCount);
  EXPECT_EQ(table.charge(who(7, 2), 0, kOne, false).result, Charge::kCount);
  EXPECT_EQ(table.charge(who(0, 5), 0, kOne, false).result, Charge::kOk);  // the low half is zero
  EXPECT_EQ(table.charge(who(0, 5), 0, kOne, false).result, Charge::kCount);
  EXPECT_EQ(table.used(), 3U);
}

// ---- room

TEST(BudgetTable, SizeIsRoundedUpToAPowerOfTwoOfAtLeastSixtyFour) {
  EXPECT_EQ(BudgetTable(1).capacity(), 64U);
  EXPECT_EQ(BudgetTable(65).capacity(), 128U);
  EXPECT_EQ(BudgetTable(16384).capacity(), 16384U);
  EXPECT_EQ(BudgetTable::memory_bytes(65), BudgetTable::memory_bytes(128));
  EXPECT_GE(BudgetTable::memory_bytes(16384), 16384U * (64 + 8));
}

// All in one bucket of eight: they overflow into the next buckets and are all found again.
TEST(BudgetTable, CollidingIdentitiesSpillOverAndAreFound) {
  BudgetTable table(64);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 0};
  std::vector<Charged> charged;
  for (std::uint64_t i = 0; i < 30; ++i) {  // multiples of 8: the home is bucket 0 of 8
    charged.push_back(table.charge(who(8 * (i + 1)), 0, kOne, false));
    ASSERT_EQ(charged.back().result, Charge::kOk) << i;
  }
  for (std::uint64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(table.charge(who(8 * (i + 1)), 0, kOne, false).result, Charge::kCount) << i;
  }
  EXPECT_EQ(table.used(), 30U);
  // Those in the home bucket leave and new ones replace them; the others are still found.
  for (std::size_t i = 0; i < 8; ++i) table.give_back(charged[i].entry, 0);
  for (std::uint64_t i = 100; i < 108; ++i) {
    EXPECT_EQ(table.charge(who(8 * i), 0, kOne, false).result, Charge::kOk);
  }
  for (std::uint64_t i = 8; i < 30; ++i) {
    EXPECT_EQ(table.charge(who(8 * (i + 1)), 0, kOne, false).result, Charge::kCount) << i;
  }
  EXPECT_EQ(table.used(), 30U);
}

TEST(BudgetTable, TheLastBucketSpillsOverIntoTheFirst) {
  BudgetTable table(64);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 0};
  for (std::uint64_t i = 0; i < 12; ++i) {
    ASSERT_EQ(table.charge(who(8 * i + 7), 0, kOne, false).result, Charge::kOk);
  }
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(table.charge(who(8 * i + 7), 0, kOne, false).result, Charge::kCount);
  }
}

TEST(BudgetTable, WhoeverHoldsNothingMakesRoomAndWhoeverHoldsSomethingIsPinned) {
  BudgetTable table(64);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 0};
  std::vector<Charged> busy;
  for (std::uint64_t i = 1; i <= 64; ++i) {
    busy.push_back(table.charge(who(i), 0, kOne, false));
    ASSERT_EQ(busy.back().result, Charge::kOk);
  }
  const Charged refused = table.charge(who(1000), 0, kOne, false);
  EXPECT_EQ(refused.result, Charge::kNoRoom);
  EXPECT_EQ(refused.entry, BudgetTable::kNoEntry);
  const Charged forced = table.charge(who(1000), 0, kOne, true);
  EXPECT_EQ(forced.result, Charge::kNoRoom);
  EXPECT_EQ(forced.entry, BudgetTable::kNoEntry);
  EXPECT_EQ(forced.over, Charge::kNoRoom);
  table.give_back(busy[40].entry, 0);
  const Charged served = table.charge(who(1000), 0, kOne, false);
  EXPECT_EQ(served.result, Charge::kOk);
  EXPECT_EQ(served.entry, busy[40].entry);
  EXPECT_EQ(table.used(), 64U);
  for (std::uint64_t i = 1; i <= 64; ++i) {
    if (i == 41) continue;
    EXPECT_EQ(table.charge(who(i), 0, kOne, false).result, Charge::kCount);
  }
}

TEST(BudgetTable, WithHalfOfTheEntriesBusyThereIsAlwaysRoom) {
  BudgetTable table(64);
  Rng rng(3);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 0};
  std::vector<std::uint32_t> busy;
  for (int i = 0; i < 20'000; ++i) {
    if (busy.size() == 32) {
      const std::size_t leaves = rng.below(busy.size());
      table.give_back(busy[leaves], 0);
      busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(leaves));
    }
    const std::uint64_t home = rng.below(2);  // crowd two of the eight buckets
    const Charged charged =
        table.charge(who(8 * rng.next_u64() + home, rng.next_u64()), 0, kOne, false);
    ASSERT_EQ(charged.result, Charge::kOk) << i;
    busy.push_back(charged.entry);
  }
}

TEST(BudgetTable, ANewcomerInheritsNothing) {
  BudgetTable table(64);
  constexpr BudgetCaps kOne{.count_max = 1, .bytes_max = 10};
  for (std::uint64_t i = 1; i < 1000; ++i) {
    const Charged charged = table.charge(who(8 * i, i, "name"), 10, kOne, false);
    ASSERT_EQ(charged.result, Charge::kOk);
    EXPECT_EQ(table.charge(who(8 * i, i), 0, kOne, false).result, Charge::kCount);
    EXPECT_EQ(table.top(1).at(0).refused, 1U);  // its own count, not that of the replaced entry
    table.give_back(charged.entry, 10);
  }
  EXPECT_TRUE(table.idle());
  EXPECT_EQ(table.used(), 8U);  // one bucket was enough
}

// ---- lists

TEST(BudgetTable, TheHeaviestComeFirstWithTheirLabels) {
  BudgetTable table(64);
  constexpr BudgetCaps kWide{.count_max = 10, .bytes_max = 1000};
  const auto charge = [&](std::uint64_t id, std::string_view label, std::uint64_t bytes) {
    return table.charge(who(id, 1, label), bytes, kWide, false).result;
  };
  EXPECT_EQ(charge(1, "one", 5), Charge::kOk);
  EXPECT_EQ(charge(2, "two", 5), Charge::kOk);
  EXPECT_EQ(charge(2, "two", 5), Charge::kOk);
  EXPECT_EQ(charge(3, "", 500), Charge::kOk);
  EXPECT_EQ(charge(3, "", 501), Charge::kBytes);
  const std::vector<BudgetRow> rows = table.top(10);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].label, "two");
  EXPECT_EQ(rows[0].in_flight, 2U);
  EXPECT_EQ(rows[0].bytes, 10U);
  EXPECT_EQ(rows[1].label, "");  // as many requests as "one", more bytes
  EXPECT_EQ(rows[1].id, 3U);
  EXPECT_EQ(rows[1].refused, 1U);
  EXPECT_EQ(rows[2].label, "one");
  EXPECT_EQ(table.top(1).size(), 1U);
  EXPECT_TRUE(table.top(0).empty());
}

TEST(BudgetTable, ALabelIsCutAtFortyBytes) {
  BudgetTable table(64);
  const std::string forty(40, 'x');
  EXPECT_EQ(table.charge(who(1, 1, forty), 0, kCaps, false).result, Charge::kOk);
  EXPECT_EQ(table.charge(who(2, 1, forty + "y"), 1, kCaps, false).result, Charge::kOk);
  for (const BudgetRow& row : table.top(2)) EXPECT_EQ(row.label, forty);
}

TEST(BudgetTableDeathTest, GivingBackMoreThanIsHeldIsABug) {
  BudgetTable table(64);
  const std::uint32_t entry = table.charge(who(7), 10, kCaps, false).entry;
  EXPECT_DEATH(table.give_back(entry, 11), "WEIR_ASSERT");
  EXPECT_DEATH(table.shrink(entry, 11), "WEIR_ASSERT");
  table.give_back(entry, 10);
  EXPECT_DEATH(table.give_back(entry, 0), "WEIR_ASSERT");
}

// ---- threads

// More identities than entries, so entries are replaced all the time, and all in few buckets: no
// identity ever exceeds its caps, none is refused for lack of an entry, all is given back.
TEST(BudgetTable, CapsHoldWhileEntriesChangeHands) {
  constexpr std::size_t kThreads = 8;
  constexpr std::size_t kNames = 150;
  constexpr int kEach = rounds(60'000);
  constexpr BudgetCaps kTight{.count_max = 2, .bytes_max = 15};
  BudgetTable table(64);
  std::array<std::atomic<int>, kNames> count{};
  std::array<std::atomic<int>, kNames> bytes{};
  std::atomic<int> wrong{0};
  run_together(kThreads, [&](std::size_t t) {
    Rng rng(100 + t);
    for (int i = 0; i < kEach; ++i) {
      const std::size_t name = rng.below(kNames);
      const int size = static_cast<int>(rng.between(1, 10));
      const Identity identity = who(16 * name + name % 2, name + 1);
      const Charged charged =
          table.charge(identity, static_cast<std::uint64_t>(size), kTight, false);
      if (charged.result == Charge::kNoRoom) wrong.fetch_add(1);
      if (charged.result != Charge::kOk) continue;
      if (count[name].fetch_add(1) + 1 > 2) wrong.fetch_add(1);
      if (bytes[name].fetch_add(size) + size > 15) wrong.fetch_add(1);
      if (i % 16 == 0) std::this_thread::yield();
      bytes[name].fetch_sub(size);
      count[name].fetch_sub(1);
      table.give_back(charged.entry, static_cast<std::uint64_t>(size));
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(table.idle());
}

// A list that is read while entries are replaced has the right label for each identity.
TEST(BudgetTable, RowsAreNeverMixedFromTwoHolders) {
  constexpr std::size_t kRows = rounds(100'000);
  BudgetTable table(64);
  std::atomic<bool> stop{false};
  std::jthread churn([&] {
    // Six hold something at any time; each new identity replaces one that just left.
    std::array<std::pair<std::uint32_t, std::uint64_t>, 6> held{};
    held.fill({BudgetTable::kNoEntry, 0});
    for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      auto& [entry, bytes] = held[i % held.size()];
      if (entry != BudgetTable::kNoEntry) table.give_back(entry, bytes);
      bytes = 8 * (1 + i % 100);
      entry = table.charge(who(bytes, bytes, std::to_string(bytes)), bytes, kCaps, true).entry;
    }
    for (const auto& [entry, bytes] : held) {
      if (entry != BudgetTable::kNoEntry) table.give_back(entry, bytes);
    }
  });
  for (std::size_t rows = 0; rows < kRows;) {
    for (const BudgetRow& row : table.top(64)) {
      EXPECT_EQ(row.label, std::to_string(row.id));
      EXPECT_EQ(row.bytes, row.id);
      ++rows;
    }
  }
  stop.store(true);
  churn.join();
  EXPECT_TRUE(table.idle());
}

}  // namespace
}  // namespace weir::inline v0::inline control
