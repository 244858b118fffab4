#include "io/shared_blocks.h"

#include <array>
#include <atomic>
#include <latch>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/io/loop_threads.h"

namespace weir::inline v0::io {
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

struct WaitingLoops : testing::Test {
  WaitingLoops() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      tasks[i].on_run(io::Callback<>::to<&Resumer::run>(resumers[i]));
    }
  }
  void attach(SharedBlocks& blocks) {
    for (std::uint32_t i = 0; i < 2; ++i) blocks.attach(i, loop, tasks[i]);
  }
  io::Loop loop;
  std::array<Resumer, 2> resumers;
  std::array<io::Task, 2> tasks;
};

TEST_F(WaitingLoops, BlockThatComesBackGoesToTheOneWhoWaits) {
  SharedBlocks blocks({.count = 1, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 2});
  attach(blocks);
  std::byte* only = blocks.acquire(0, Access::kOrdinary);
  EXPECT_EQ(blocks.acquire(1, Access::kOrdinary), nullptr);
  blocks.set_waiting(1, 1);
  EXPECT_EQ(blocks.take_handed(1), nullptr);
  blocks.release(0, only);  // not into the cache, and not to the first acquire()
  EXPECT_EQ(blocks.acquire(0, Access::kOrdinary), nullptr);
  loop.run_once();
  EXPECT_EQ(resumers[1].count, 1);
  EXPECT_EQ(blocks.take_handed(1), only);
  blocks.set_waiting(1, 0);
  EXPECT_FALSE(blocks.wanted());
  EXPECT_EQ(blocks.stats().used, 1U);
  blocks.release(1, only);
}

TEST_F(WaitingLoops, BlockThatCameBackBeforeTheWaitIsNotMissed) {
  SharedBlocks blocks({.count = 1, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 0});
  attach(blocks);
  std::byte* only = blocks.acquire(0, Access::kOrdinary);
  EXPECT_EQ(blocks.acquire(1, Access::kOrdinary), nullptr);
  blocks.release(0, only);
  blocks.set_waiting(1, 1);
  loop.run_once();
  EXPECT_EQ(resumers[1].count, 1);
  EXPECT_EQ(blocks.take_handed(1), only);
  blocks.set_waiting(1, 0);
  blocks.release(1, only);
}

TEST_F(WaitingLoops, AreServedInProportionToTheirWaiters) {
  SharedBlocks blocks({.count = 1, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 0});
  attach(blocks);
  std::byte* block = blocks.acquire(0, Access::kOrdinary);
  blocks.set_waiting(0, 9);
  blocks.set_waiting(1, 3);
  std::array<int, 2> served{};
  for (int i = 0; i < 1200; ++i) {
    blocks.release(0, block);
    block = nullptr;
    for (std::uint32_t k = 0; k < 2; ++k) {
      if (std::byte* got = blocks.take_handed(k); got != nullptr) {
        block = got;
        ++served[k];
      }
    }
    ASSERT_NE(block, nullptr);
  }
  EXPECT_EQ(served[0], 900);
  EXPECT_EQ(served[1], 300);
  blocks.set_waiting(0, 0);
  blocks.set_waiting(1, 0);
  blocks.release(0, block);
}

TEST_F(WaitingLoops, WhoComesLateForItsBlocksIsServedItsShareAfterwards) {
  SharedBlocks blocks({.count = 2, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 0});
  attach(blocks);
  std::byte* one = blocks.acquire(0, Access::kOrdinary);
  std::byte* other = blocks.acquire(0, Access::kOrdinary);
  blocks.set_waiting(0, 1);
  blocks.set_waiting(1, 1);
  blocks.release(0, one);
  blocks.release(0, other);
  constexpr int kTurns = 10;
  for (int i = 0; i < kTurns; ++i) {  // loop 1 has a block but does not take it
    std::byte* block = blocks.take_handed(0);
    ASSERT_NE(block, nullptr) << i;
    blocks.release(0, block);
  }
  std::byte* held = blocks.take_handed(0);  // loop 0 still has a waiter
  std::byte* late = blocks.take_handed(1);
  ASSERT_NE(late, nullptr);
  for (int i = 0; i < kTurns; ++i) {
    blocks.release(1, late);
    late = blocks.take_handed(1);
    ASSERT_NE(late, nullptr) << i << " of " << kTurns << " turns were made up";
  }
  blocks.set_waiting(0, 0);
  blocks.set_waiting(1, 0);
  blocks.release(0, held);
  blocks.release(1, late);
  EXPECT_EQ(blocks.stats().used, 0U);
}

TEST_F(WaitingLoops, TurnsOwedAreBounded) {
  SharedBlocks blocks({.count = 2, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 0});
  attach(blocks);
  std::byte* one = blocks.acquire(0, Access::kOrdinary);
  std::byte* other = blocks.acquire(0, Access::kOrdinary);
  blocks.set_waiting(0, 1);
  blocks.set_waiting(1, 1);
  blocks.release(0, one);
  blocks.release(0, other);
  for (int i = 0; i < 10'000; ++i) blocks.release(0, blocks.take_handed(0));
  std::byte* held = blocks.take_handed(0);  // loop 0 still has a waiter
  std::byte* late = blocks.take_handed(1);
  int turns = 0;
  for (; turns < 1000; ++turns) {
    blocks.release(1, late);
    late = blocks.take_handed(1);
    if (late == nullptr) break;
  }
  EXPECT_GT(turns, 10);
  EXPECT_LT(turns, 100);
  blocks.set_waiting(0, 0);
  blocks.set_waiting(1, 0);
  blocks.release(0, held);
  EXPECT_EQ(blocks.stats().used, 0U);
}

TEST_F(WaitingLoops, ReserveIsFilledBeforeWaitersAreServed) {
  SharedBlocks blocks({.count = 2, .bytes_each = 64, .reserved = 1, .loops = 2, .cached_max = 0});
  attach(blocks);
  std::byte* ordinary = blocks.acquire(0, Access::kOrdinary);
  std::byte* critical = blocks.acquire(0, Access::kCritical);
  blocks.set_waiting(1, 1);
  blocks.release(0, critical);
  EXPECT_EQ(blocks.take_handed(1), nullptr);
  EXPECT_EQ(blocks.free_count(), 1U);
  blocks.release(0, ordinary);
  EXPECT_EQ(blocks.take_handed(1), ordinary);
  blocks.set_waiting(1, 0);
  blocks.release(1, ordinary);
}

TEST_F(WaitingLoops, WhoStopsWaitingGivesBackWhatWasHanded) {
  SharedBlocks blocks({.count = 1, .bytes_each = 64, .reserved = 0, .loops = 2, .cached_max = 0});
  attach(blocks);
  std::byte* only = blocks.acquire(0, Access::kOrdinary);
  blocks.set_waiting(1, 1);
  blocks.release(0, only);
  EXPECT_EQ(blocks.stats().used, 0U) << "handed, but nobody uses it";
  blocks.set_waiting(1, 0);
  EXPECT_EQ(blocks.acquire(0, Access::kOrdinary), only);
  blocks.release(0, only);
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
          // Written without synchronisation: tsan reports a data race if there are two owners.
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

}  // namespace
}  // namespace weir::inline v0::io
