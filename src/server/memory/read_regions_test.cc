#include "memory/read_regions.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weir::inline v0::inline server {
namespace {

constexpr BlockPool::Shape kShape = {.block_count = 16, .block_bytes = 32 * 1024};

bool resident(const std::byte* page) {
  unsigned char state = 0;
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(::mincore(const_cast<std::byte*>(page), size, &state), 0);
  return (state & 1U) != 0;
}

TEST(RegionStack, EveryConnectionCanLeaseAtOnce) {
  RegionPool pool(kShape);
  RegionStack stack(pool);
  for (int i = 0; i < 16; ++i) stack.adopt();
  std::set<std::byte*> seen;
  std::vector<ReadRegion> leases;
  for (int i = 0; i < 16; ++i) {
    leases.push_back(stack.lease());
    EXPECT_EQ(leases.back().memory.size(), kShape.block_bytes);
    seen.insert(leases.back().memory.data());
  }
  EXPECT_EQ(seen.size(), 16U);
  EXPECT_EQ(stack.leased(), 16U);
  EXPECT_DEATH(static_cast<void>(stack.lease()), "free_ > 0") << "more leases than connections";
  for (const ReadRegion& lease : leases) stack.release(lease);
  EXPECT_EQ(stack.leased(), 0U);
}

TEST(RegionStack, LastReleasedIsLeasedFirst) {
  RegionPool pool(kShape);
  RegionStack stack(pool);
  for (int i = 0; i < 8; ++i) stack.adopt();
  const ReadRegion hot = stack.lease();
  stack.release(hot);
  for (int i = 0; i < 100; ++i) {
    const ReadRegion again = stack.lease();
    ASSERT_EQ(again.index, hot.index);
    stack.release(again);
  }
  stack.adopt();  // a new connection's region goes to the cold end
  EXPECT_EQ(stack.lease().index, hot.index);
  stack.release(hot);
}

TEST(RegionStack, LoopsShareExactlyAsManyAsThereAreConnections) {
  RegionPool pool(kShape);
  RegionStack first(pool);
  RegionStack second(pool);
  for (int i = 0; i < 10; ++i) first.adopt();
  for (int i = 0; i < 6; ++i) second.adopt();
  EXPECT_DEATH(second.adopt(), "region != nullptr");
  first.abandon();
  second.adopt();
  EXPECT_EQ(first.owned() + second.owned(), 16U);
}

TEST(RegionStack, SweepReturnsOnlyWhatWasNotUsedSinceTheLastOne) {
  RegionPool pool(kShape);
  RegionStack stack(pool);
  for (int i = 0; i < 8; ++i) stack.adopt();
  std::vector<ReadRegion> leases;
  for (int i = 0; i < 8; ++i) {
    leases.push_back(stack.lease());
    std::memset(leases.back().memory.data(), 1, leases.back().memory.size());
  }
  for (auto it = leases.rbegin(); it != leases.rend(); ++it) stack.release(*it);
  EXPECT_EQ(stack.sweep(), 0U) << "all were in use since the last sweep";
  const ReadRegion hot = stack.lease();
  stack.release(hot);
  EXPECT_EQ(stack.sweep(), 7U);
  EXPECT_TRUE(resident(hot.memory.data()));
  const auto cold = std::count_if(leases.begin(), leases.end(), [](const ReadRegion& region) {
    return !resident(region.memory.data());
  });
  EXPECT_EQ(cold, 7);
  EXPECT_EQ(stack.sweep(), 1U) << "the hot one rested this time; the others are gone already";
}

TEST(RegionStack, ChurnOfConnectionsKeepsCounts) {
  RegionPool pool(kShape);
  RegionStack stack(pool);
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 16; ++i) stack.adopt();
    const ReadRegion a = stack.lease();
    const ReadRegion b = stack.lease();
    stack.release(b);
    stack.release(a);
    if (round % 100 == 0) static_cast<void>(stack.sweep());
    for (int i = 0; i < 16; ++i) stack.abandon();
    ASSERT_EQ(stack.owned(), 0U);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
