#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "weir/base/block_pool.h"
#include "weir/base/byte_size.h"
#include "weir/base/duration_text.h"
#include "weir/base/intrusive_list.h"
#include "weir/base/ring.h"
#include "weir/base/rng.h"
#include "weir/base/siphash.h"
#include "weir/base/slab.h"

#include "base/allocation_probe.h"

namespace weir {
namespace {

struct Node {
  ListHook<Node> hook;
  int value = 0;
};

TEST(NoAllocation, ContainersAllocateOnlyWhenMade) {
  Ring<int> ring(8);
  Slab<int> slab(8);
  BlockPool pool({.block_count = 8, .block_bytes = 64});
  IntrusiveList<Node, &Node::hook> list;
  Node node;
  Rng rng(1);
  const std::size_t before = allocations_so_far();
  std::uint64_t sink = 0;
  for (int i = 0; i < 100; ++i) {
    if (!ring.push_back(i)) sink += static_cast<std::uint64_t>(ring.pop_front());
    const SlabHandle handle = slab.acquire(i);
    if (handle && i % 3 != 0) slab.release(handle);
    std::byte* block = pool.acquire();
    if (block != nullptr && i % 3 != 0) pool.release(block);
    list.push_back(node);
    list.remove(node);
    sink += siphash64({1, 2}, "name") + rng.fork().below(10);
    sink += parse_byte_size("4GiB")->bytes() + (parse_duration("nonsense") ? 1U : 0U);
  }
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_NE(sink, 0U);
}

TEST(NoAllocation, RingTakesExactlyOne) {
  if (!allocations_are_counted()) GTEST_SKIP() << "operator new belongs to the sanitizer";
  const std::size_t before = allocations_so_far();
  const Ring<int> ring(1000);
  EXPECT_EQ(allocations_so_far() - before, 1U);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace weir
