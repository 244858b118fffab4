#include "server/shared_blocks.h"

#include <atomic>
#include <latch>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "weir/io/loop_threads.h"

#include "server/write_pool.h"

namespace weir::inline v0 {
namespace {

TEST(SharedBlocks, OrdinaryWorkLeavesTheReserve) {
  SharedBlocks blocks({.count = 4, .bytes_each = 64, .reserved = 1, .loops = 1, .cached_max = 2});
  std::vector<std::byte*> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(blocks.acquire(0, Access::kOrdinary));
  EXPECT_EQ(blocks.acquire(0, Access::kOrdinary), nullptr);
  std::byte* critical = blocks.acquire(0, Access::kCritical);
  EXPECT_NE(critical, nullptr);
  EXPECT_EQ(blocks.acquire(0, Access::kCritical), nullptr);
  EXPECT_EQ(blocks.stats().exhausted, 2U);
  EXPECT_EQ(blocks.stats().used, 4U);
  blocks.release(0, critical);
  EXPECT_EQ(blocks.acquire(0, Access::kOrdinary), nullptr) << "the reserve is no cache";
  for (std::byte* block : taken) blocks.release(0, block);
  EXPECT_EQ(blocks.stats().used, 0U);
}

TEST(SharedBlocks, CachedBlocksAreNotCountedAsUsedAndComeBackFirst) {
  SharedBlocks blocks({.count = 8, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 2});
  std::byte* first = blocks.acquire(0, Access::kOrdinary);
  blocks.release(0, first);
  EXPECT_EQ(blocks.stats().used, 0U);
  EXPECT_EQ(blocks.free_count(), 7U) << "one is in the cache";
  EXPECT_EQ(blocks.acquire(0, Access::kOrdinary), first);
  blocks.release(0, first);
  blocks.flush(0);
  EXPECT_EQ(blocks.free_count(), 8U);
}

struct Resumer {
  void run() { ++count; }
  int count = 0;
};

TEST(SharedBlocks, WaitingLoopIsResumedWhenABlockComesBack) {
  io::Loop loop;
  Resumer resumer;
  io::Task resume(io::Callback<>::to<&Resumer::run>(resumer));
  SharedBlocks blocks({.count = 1, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 2});
  std::byte* only = blocks.acquire(0, Access::kOrdinary);
  EXPECT_EQ(blocks.acquire(1, Access::kOrdinary), nullptr);
  blocks.want(1, loop, resume);
  loop.run_once();
  EXPECT_EQ(resumer.count, 0);
  blocks.release(0, only);  // not into the cache: somebody waits
  loop.run_once();
  EXPECT_EQ(resumer.count, 1);
  EXPECT_NE(blocks.acquire(1, Access::kOrdinary), nullptr);
  blocks.unwant(1);
  EXPECT_FALSE(blocks.wanted());
}

TEST(SharedBlocks, BlockThatCameBackBeforeWantIsNotMissed) {
  io::Loop loop;
  Resumer resumer;
  io::Task resume(io::Callback<>::to<&Resumer::run>(resumer));
  SharedBlocks blocks({.count = 1, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 0});
  std::byte* only = blocks.acquire(0, Access::kOrdinary);
  EXPECT_EQ(blocks.acquire(1, Access::kOrdinary), nullptr);
  blocks.release(0, only);
  blocks.want(1, loop, resume);
  loop.run_once();
  EXPECT_EQ(resumer.count, 1);
  blocks.unwant(1);
}

TEST(SharedBlocks, LoopsNeverHoldTheSameBlock) {
  constexpr std::uint32_t kLoops = 3;
  constexpr int kRounds = 20'000;
  SharedBlocks blocks(
      {.count = 8, .bytes_each = 64, .reserved = 1, .loops = kLoops, .cached_max = 2});
  io::LoopThreads loops({.count = kLoops, .pin = false, .name = "blocks"});
  loops.start();
  std::latch done(kLoops);
  std::atomic<int> clashes{0};
  for (std::uint32_t i = 0; i < kLoops; ++i) {
    loops.at(i).post([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        std::byte* held[3] = {};
        for (std::byte*& block : held) {
          block = blocks.acquire(i, round % 5 == 0 ? Access::kCritical : Access::kOrdinary);
          if (block == nullptr) continue;
          // The owner writes its mark plainly: two owners would be a data race, and tsan says so.
          *block = static_cast<std::byte>(i + 1);
        }
        for (std::byte* block : held) {
          if (block == nullptr) continue;
          if (*block != static_cast<std::byte>(i + 1)) clashes.fetch_add(1);
          blocks.release(i, block);
        }
      }
      blocks.flush(i);
      done.count_down();
    });
  }
  done.wait();
  loops.stop();
  EXPECT_EQ(clashes.load(), 0);
  EXPECT_EQ(blocks.stats().used, 0U);
  EXPECT_EQ(blocks.free_count(), 8U);
}

TEST(WritePool, BuffersStartEmptyEachTime) {
  WritePool pool({.count = 2, .bytes_each = 4096, .reserved = 0, .loops = 1, .cached_max = 1});
  WriteBuffer* buffer = pool.acquire(0, Access::kOrdinary);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->room(), 4096U);
  buffer->end = 100;
  buffer->begin = 40;
  EXPECT_EQ(buffer->pending(), 60U);
  pool.release(0, buffer);
  EXPECT_EQ(pool.acquire(0, Access::kOrdinary), buffer);
  EXPECT_EQ(buffer->pending(), 0U);
  EXPECT_EQ(buffer->room(), 4096U);
  pool.release(0, buffer);
}

}  // namespace
}  // namespace weir::inline v0
