#include "weir/base/block_pool.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t resident_pages(const BlockPool& pool) {
  std::vector<unsigned char> pages(pool.mapped_bytes() / page_bytes());
  EXPECT_EQ(::mincore(pool.at(0), pool.mapped_bytes(), pages.data()), 0);
  std::size_t count = 0;
  for (const unsigned char page : pages) count += page & 1U;
  return count;
}

TEST(BlockPool, GivesDistinctWritableBlocksUntilExhausted) {
  BlockPool pool({.block_count = 3, .block_bytes = 100});
  std::set<std::byte*> blocks;
  for (int i = 0; i < 3; ++i) {
    std::byte* block = pool.acquire();
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
    EXPECT_EQ(pool.span_of(block).size(), 100U);
    std::memset(block, 0xAB, pool.block_bytes());
    blocks.insert(block);
  }
  EXPECT_EQ(blocks.size(), 3U);
  EXPECT_EQ(pool.acquire(), nullptr);
  EXPECT_EQ(pool.stats(), (PoolStats{.used = 3, .peak = 3, .capacity = 3, .exhausted = 1}));
  EXPECT_EQ(usage(pool.stats()), 1.0);
}

TEST(BlockPool, BlockFreedLastIsUsedFirst) {
  BlockPool pool({.block_count = 3, .block_bytes = 64});
  std::byte* a = pool.acquire();
  std::byte* b = pool.acquire();
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.acquire(), b);
  EXPECT_EQ(pool.acquire(), a);
  EXPECT_EQ(pool.stats().peak, 2U);
}

TEST(BlockPool, IndexAndPointerAgree) {
  BlockPool pool({.block_count = 5, .block_bytes = 1000});
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(pool.index_of(pool.at(i)), i);
}

TEST(BlockPool, NeverUsedBlocksAreNotCommitted) {
  constexpr std::size_t kBlockBytes = 32 * 1024;
  BlockPool pool({.block_count = 4096, .block_bytes = kBlockBytes});  // 128 MiB of addresses
  EXPECT_EQ(resident_pages(pool), 0U);
  std::vector<std::byte*> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(pool.acquire());
    std::memset(held.back(), 1, kBlockBytes);
  }
  EXPECT_EQ(resident_pages(pool), 4 * kBlockBytes / page_bytes());
  for (std::byte* block : held) pool.release(block);
  for (int i = 0; i < 1000; ++i) {
    std::byte* block = pool.acquire();
    block[0] = std::byte{1};
    pool.release(block);
  }
  EXPECT_EQ(resident_pages(pool), 4 * kBlockBytes / page_bytes());
}

TEST(BlockPool, TrimGivesBackTheColdestFreeBlocksOnly) {
  const std::size_t page = page_bytes();
  BlockPool pool({.block_count = 8, .block_bytes = page});
  std::vector<std::byte*> held;
  for (int i = 0; i < 6; ++i) {
    held.push_back(pool.acquire());
    held.back()[0] = std::byte{9};
  }
  for (int i = 0; i < 4; ++i) pool.release(held[static_cast<std::size_t>(i)]);  // 0 is oldest
  EXPECT_EQ(pool.trim(2), 2U);
  EXPECT_EQ(resident_pages(pool), 4U);
  EXPECT_EQ(held[4][0], std::byte{9});
  EXPECT_EQ(held[3][0], std::byte{9});
  EXPECT_EQ(held[0][0], std::byte{0});  // released, and zero when touched again
  EXPECT_EQ(pool.trim(100), 2U);        // not the first two again
  EXPECT_EQ(pool.trim(100), 0U);
  std::byte* warm = pool.acquire();
  warm[0] = std::byte{1};
  pool.release(warm);
  EXPECT_EQ(pool.trim(100), 1U);  // used since then, so it is trimmed again
}

TEST(BlockPool, TrimSparesNeighboursInTheSamePage) {
  BlockPool pool({.block_count = 8, .block_bytes = page_bytes() / 2});
  std::byte* a = pool.acquire();
  std::byte* b = pool.acquire();
  b[0] = std::byte{7};
  pool.release(a);
  EXPECT_EQ(pool.trim(8), 1U);
  EXPECT_EQ(b[0], std::byte{7});
}

TEST(BlockPool, StatisticsHoldUnderRandomUse) {
  Rng rng(31);
  BlockPool pool({.block_count = 16, .block_bytes = 64});
  std::vector<std::byte*> held;
  PoolStats model{.capacity = 16};
  for (int step = 0; step < 20'000; ++step) {
    if (rng.chance(0.5)) {
      std::byte* block = pool.acquire();
      ASSERT_EQ(block == nullptr, held.size() == 16);
      if (block == nullptr) {
        ++model.exhausted;
      } else {
        held.push_back(block);
      }
    } else if (!held.empty()) {
      std::swap(held[rng.below(held.size())], held.back());
      pool.release(held.back());
      held.pop_back();
    }
    if (rng.chance(0.01)) static_cast<void>(pool.trim(4));
    model.used = held.size();
    model.peak = std::max(model.peak, model.used);
    ASSERT_EQ(pool.stats(), model);
  }
  EXPECT_EQ(std::set<std::byte*>(held.begin(), held.end()).size(), held.size());
}

TEST(BlockPool, EmptyPoolSaysNo) {
  BlockPool pool({.block_count = 0, .block_bytes = 64});
  EXPECT_EQ(pool.acquire(), nullptr);
  EXPECT_EQ(pool.mapped_bytes(), 0U);
}

TEST(BlockPool, ImpossibleSizeIsBadAlloc) {
  const BlockPool::Shape overflows{.block_count = 1000,
                                   .block_bytes = std::numeric_limits<std::size_t>::max() / 2};
  EXPECT_THROW(BlockPool{overflows}, std::bad_alloc);
  const BlockPool::Shape too_large{.block_count = 1024, .block_bytes = std::size_t{1} << 46U};
  EXPECT_THROW(BlockPool{too_large}, std::bad_alloc);
}

TEST(BlockPoolDeathTest, WrongReleasesAreCaught) {
  BlockPool pool({.block_count = 2, .block_bytes = 128});
  std::byte* block = pool.acquire();
  EXPECT_DEATH(pool.release(block + 64), "WEIR_ASSERT");
  EXPECT_DEATH(pool.release(nullptr), "WEIR_ASSERT");
  EXPECT_DEATH(pool.release(pool.at(1)), "WEIR_ASSERT");  // never taken
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "WEIR_ASSERT");
}

}  // namespace
}  // namespace weir
