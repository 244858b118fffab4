#include "memory/outbox.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline server {
namespace {

constexpr std::uint32_t kBuffer = 4096;

struct OutboxTest : testing::Test {
  void SetUp() override { out.bind(pool, 0, 4); }
  void TearDown() override {
    out.clear();
    pool.blocks().flush(0);
    EXPECT_EQ(pool.blocks().free_count(), 6U) << "every buffer went back";
  }
  /// The bytes that the kernel would get, at most `size`.
  std::string take(std::size_t size) {
    std::array<io::ConstBuffer, io::Socket::kGatherMax> pieces;
    const std::size_t count = out.gather(pieces);
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) {
      bytes.append(reinterpret_cast<const char*>(pieces[i].data), pieces[i].size);
    }
    bytes.resize(std::min(bytes.size(), size));
    out.sent(bytes.size());
    return bytes;
  }

  WritePool pool{{.count = 6, .bytes_each = kBuffer, .reserved = 1, .loops = 1, .cached_max = 2}};
  Outbox out;
};

TEST_F(OutboxTest, BytesLeaveInTheOrderTheyCame) {
  EXPECT_EQ(out.append("one ", io::Access::kOrdinary), 4U);
  EXPECT_TRUE(out.append_literal("two "));
  EXPECT_TRUE(out.append_view("three "));
  EXPECT_TRUE(out.append_view("four"));
  EXPECT_EQ(out.pending(), 18U);
  EXPECT_EQ(take(6), "one tw");
  EXPECT_EQ(take(5), "o thr");
  EXPECT_EQ(take(100), "ee four");
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(out.buffers(), 0U);
}

TEST(OutboxQuota, TakesUpToItsQuotaFromAnEmptyPoolAndBlamesItself) {
  WritePool roomy({.count = 32, .bytes_each = kBuffer, .loops = 1});
  Outbox out;
  out.bind(roomy, 0, 4);
  const std::string big(10 * kBuffer, 'x');
  EXPECT_EQ(out.append(big, io::Access::kOrdinary), 4 * kBuffer);
  EXPECT_FALSE(out.blocked());
  EXPECT_EQ(out.room(), 0U);
  out.sent(kBuffer);
  EXPECT_EQ(out.room(), kBuffer);
  out.clear();
}

TEST(OutboxQuota, TheFullerThePoolTheSmallerTheShare) {
  WritePool pool({.count = 40, .bytes_each = kBuffer, .loops = 1});
  const std::string big(10 * kBuffer, 'x');
  std::array<Outbox, 20> outs;
  std::vector<std::uint32_t> held;
  for (Outbox& out : outs) {
    out.bind(pool, 0, 8);
    static_cast<void>(out.append(big, io::Access::kOrdinary));
    held.push_back(out.buffers());
  }
  EXPECT_EQ(held[0], 8U);
  EXPECT_EQ(held[1], 2U) << "a quarter is taken while it takes";
  EXPECT_EQ(held[2], 2U);
  EXPECT_EQ(held[5], 1U) << "two fifths are taken";
  EXPECT_EQ(held[19], 1U) << "everybody gets one";
  EXPECT_GT(pool.blocks().free_count(), 0U);
  for (Outbox& out : outs) out.clear();
}

TEST_F(OutboxTest, AnEmptyPoolIsToldApartFromTheQuota) {
  Outbox other;
  other.bind(pool, 0, 8);
  const std::string big(4 * kBuffer, 'x');
  EXPECT_EQ(other.append(big, io::Access::kCritical), big.size()) << "critical has its whole quota";
  EXPECT_EQ(out.append(big, io::Access::kOrdinary), kBuffer);
  Outbox third;
  third.bind(pool, 0, 4);
  EXPECT_EQ(third.append("x", io::Access::kOrdinary), 0U) << "the last one is reserved";
  EXPECT_TRUE(third.blocked());
  EXPECT_EQ(third.needed(), 1U);
  WriteBuffer* handed = pool.acquire(0, io::Access::kCritical);
  ASSERT_NE(handed, nullptr);
  third.adopt(*handed);
  EXPECT_FALSE(third.blocked());
  EXPECT_EQ(third.append("x", io::Access::kOrdinary), 1U);
  third.clear();
  other.clear();
}

TEST_F(OutboxTest, FairShareIsOneBufferWhileOthersWait) {
  out.set_fair(true);
  EXPECT_EQ(out.append(std::string(10'000, 'x'), io::Access::kOrdinary), kBuffer);
  EXPECT_FALSE(out.blocked());
  out.set_fair(false);
  EXPECT_EQ(out.append(std::string(100, 'y'), io::Access::kOrdinary), 100U);
}

TEST_F(OutboxTest, ReserveIsAllOrNothing) {
  EXPECT_TRUE(out.reserve(2 * kBuffer, io::Access::kOrdinary));
  EXPECT_EQ(out.buffers(), 2U);
  EXPECT_EQ(out.append(std::string(2 * kBuffer, 'x'), io::Access::kOrdinary), 2 * kBuffer);
  EXPECT_FALSE(out.reserve(3 * kBuffer, io::Access::kOrdinary));
  EXPECT_EQ(out.buffers(), 2U) << "what it took in vain went back";
  EXPECT_EQ(take(100'000).size(), 2 * kBuffer);
  EXPECT_TRUE(out.reserve(100, io::Access::kOrdinary));
  EXPECT_EQ(out.buffers(), 1U);
}

TEST_F(OutboxTest, SaysHowManyBuffersAWholeThingNeeds) {
  Outbox other;
  other.bind(pool, 0, 8);
  EXPECT_EQ(other.append(std::string(4 * kBuffer, 'x'), io::Access::kCritical), 4 * kBuffer);
  EXPECT_FALSE(out.reserve(2 * kBuffer + 1, io::Access::kOrdinary));
  EXPECT_EQ(out.needed(), 3U) << "those it could have had, and those it could not";
  EXPECT_EQ(out.buffers(), 0U);
  other.clear();
}

TEST_F(OutboxTest, UnusedBuffersCanBeTakenOutAgain) {
  EXPECT_EQ(out.take_unused(), nullptr);
  EXPECT_EQ(out.append("begun", io::Access::kOrdinary), 5U);
  EXPECT_EQ(out.take_unused(), nullptr) << "it is in use";
  EXPECT_TRUE(out.reserve(2 * kBuffer, io::Access::kOrdinary));
  EXPECT_EQ(out.buffers(), 3U);
  for (int i = 0; i < 2; ++i) {
    WriteBuffer* unused = out.take_unused();
    ASSERT_NE(unused, nullptr);
    EXPECT_EQ(unused->pending(), 0U);
    pool.release(0, unused);
  }
  EXPECT_EQ(out.take_unused(), nullptr);
  EXPECT_EQ(out.append(std::string(kBuffer, '!'), io::Access::kCritical), kBuffer) << "it goes on";
  EXPECT_TRUE(take(100'000) == "begun" + std::string(kBuffer, '!'));
}

TEST_F(OutboxTest, ContiguousRoomNeverSplits) {
  EXPECT_EQ(out.append(std::string(kBuffer - 10, 'a'), io::Access::kOrdinary), kBuffer - 10);
  std::span<char> space = out.contiguous(100, io::Access::kOrdinary);
  ASSERT_GE(space.size(), 100U);
  std::fill_n(space.begin(), 100, 'b');
  out.commit(100);
  EXPECT_TRUE(out.contiguous(kBuffer + 1, io::Access::kOrdinary).empty());
  EXPECT_EQ(take(100'000), std::string(kBuffer - 10, 'a') + std::string(100, 'b'));
}

TEST_F(OutboxTest, NothingGoesBehindAViewButViews) {
  EXPECT_TRUE(out.append_view("static"));
  EXPECT_EQ(out.append("copy", io::Access::kOrdinary), 0U);
  EXPECT_TRUE(out.contiguous(4, io::Access::kOrdinary).empty());
  EXPECT_FALSE(out.reserve(4, io::Access::kOrdinary));
  EXPECT_EQ(out.room(), 0U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(out.append_literal("x"));
  EXPECT_FALSE(out.append_view("fifth"));
  EXPECT_EQ(take(100), "staticxxx");
  EXPECT_EQ(out.append("copy", io::Access::kOrdinary), 4U);
}

TEST_F(OutboxTest, RandomUseLosesAndReordersNothing) {
  Rng rng(3);
  std::string expected;
  std::string seen;
  static const std::string kStatic(9000, 's');
  for (int i = 0; i < 20'000; ++i) {
    const auto size = static_cast<std::size_t>(rng.below(6000));
    switch (rng.below(4)) {
      case 0: {
        const std::string bytes(size, static_cast<char>('a' + i % 26));
        expected += bytes.substr(0, out.append(bytes, io::Access::kOrdinary));
        break;
      }
      case 1:
        if (out.append_view(std::string_view(kStatic).substr(0, size))) {
          expected += kStatic.substr(0, size);
        }
        break;
      case 2: {
        const std::span<char> space = out.contiguous(size % kBuffer + 1, io::Access::kOrdinary);
        if (space.empty()) break;
        std::fill_n(space.begin(), size % kBuffer + 1, 'c');
        out.commit(size % kBuffer + 1);
        expected += std::string(size % kBuffer + 1, 'c');
        break;
      }
      default:
        seen += take(size * 2);
        break;
    }
    ASSERT_EQ(out.pending(), expected.size() - seen.size());
    ASSERT_LE(out.buffers(), 4U);
  }
  while (!out.empty()) seen += take(100'000);
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace weir::inline v0::inline server
