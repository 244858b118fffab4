#include "control/decision_ring.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace weir::inline v0::inline control {
namespace {

/// Each word depends on the number: a mixture of two decisions is seen.
policy::DecisionWords numbered(std::uint64_t number) {
  policy::DecisionWords words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = number * 1'000'003 + i;
  return words;
}

std::uint64_t number_of(const policy::DecisionWords& words) {
  const std::uint64_t number = words[0] / 1'000'003;
  EXPECT_EQ(words, numbered(number));
  return number;
}

TEST(DecisionRing, KeepsTheNewestInOrder) {
  DecisionRing ring(5);
  std::vector<policy::DecisionWords> all;
  EXPECT_EQ(ring.copy(0, all), 0U);
  EXPECT_TRUE(all.empty());
  for (std::uint64_t n = 0; n < 100; ++n) {
    ring.put(numbered(n));
    all.clear();
    std::uint64_t lost = 0;
    EXPECT_EQ(ring.copy(0, all, &lost), n + 1);
    ASSERT_EQ(all.size(), std::min<std::uint64_t>(n + 1, 5));
    EXPECT_EQ(lost, n + 1 - all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(number_of(all[i]), n + 1 - all.size() + i);
    }
  }
  EXPECT_EQ(ring.put_count(), 100U);
}

TEST(DecisionRing, AReaderThatComesBackGetsOnlyWhatIsNew) {
  DecisionRing ring(8);
  std::vector<policy::DecisionWords> all;
  std::uint64_t next = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t n = 0; n < 50; ++n) {
    ring.put(numbered(n));
    if (n % 3 == 2) next = ring.copy(next, all, &lost);
  }
  next = ring.copy(next, all, &lost);
  EXPECT_EQ(lost, 0U);
  ASSERT_EQ(all.size(), 50U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(number_of(all[i]), i);
  for (std::uint64_t n = 50; n < 70; ++n) ring.put(numbered(n));
  EXPECT_EQ(ring.copy(next, all, &lost), 70U);
  EXPECT_EQ(lost, 12U);
}

// One writer that never waits, several readers: each sees whole decisions, in order, and with those
// that it lost the count is exact. The writer goes on until the readers have read enough, so it
// overwrites what they copy.
TEST(DecisionRing, ReadersBesideTheWriterSeeWholeDecisionsAndExactCounts) {
  constexpr int kRounds = 60;
  constexpr int kReaders = 3;
  constexpr std::size_t kCapacity = 5000;
  DecisionRing ring(kCapacity);
  std::latch start(kReaders + 1);
  std::atomic<int> reading{kReaders};
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      start.arrive_and_wait();
      std::vector<policy::DecisionWords> found;
      std::uint64_t next = 0;
      std::uint64_t lost = 0;
      std::uint64_t seen = 0;
      for (int round = 0; round < kRounds;) {
        found.clear();
        const std::uint64_t end = ring.copy(next, found, &lost);
        std::uint64_t expected = end - found.size();
        for (const policy::DecisionWords& words : found) EXPECT_EQ(number_of(words), expected++);
        seen += found.size();
        next = end;
        EXPECT_EQ(seen + lost, end);
        // To its last place, into memory that grows meanwhile: slow, so that the writer overtakes.
        std::vector<policy::DecisionWords> all;
        const std::uint64_t whole = ring.copy(0, all);
        expected = whole - all.size();
        for (const policy::DecisionWords& words : all) EXPECT_EQ(number_of(words), expected++);
        if (whole > kCapacity) ++round;
        if (::testing::Test::HasFailure()) break;
      }
      --reading;
    });
  }
  start.arrive_and_wait();
  std::uint64_t written = 0;
  while (reading.load() > 0) ring.put(numbered(written++));
  for (std::thread& reader : readers) reader.join();
  std::vector<policy::DecisionWords> rest;
  EXPECT_EQ(ring.copy(0, rest), written);
  EXPECT_EQ(rest.size(), kCapacity);
}

}  // namespace
}  // namespace weir::inline v0::inline control
