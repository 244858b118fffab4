#include "weir/policy/pool_share.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

TEST(PoolShare, FewerBodyLeasesPerConnectionTheFullerThePool) {
  struct Row {
    PoolFill pool;
    std::uint64_t share;
  };
  constexpr Row kRows[] = {
      {{.capacity = 100, .free = 100}, 100}, {{.capacity = 100, .free = 51}, 100},
      {{.capacity = 100, .free = 50}, 4},    {{.capacity = 100, .free = 21}, 4},
      {{.capacity = 100, .free = 20}, 1},    {{.capacity = 100, .free = 0}, 1},
      {{.capacity = 0, .free = 0}, 1},
  };
  for (const Row& row : kRows) EXPECT_EQ(body_lease_share(row.pool), row.share) << row.pool.free;
}

TEST(PoolShare, FewerWriteBuffersPerConnectionTheFullerThePool) {
  struct Row {
    PoolFill pool;
    WriteShareAsk ask;
    std::uint32_t share;
  };
  constexpr Row kRows[] = {
      {{.capacity = 100, .free = 76}, {.quota = 8}, 8},
      {{.capacity = 100, .free = 75}, {.quota = 8}, 2},
      {{.capacity = 100, .free = 61}, {.quota = 8}, 2},
      {{.capacity = 100, .free = 60}, {.quota = 8}, 1},
      {{.capacity = 100, .free = 0}, {.quota = 8}, 1},
      {{.capacity = 100, .free = 61}, {.quota = 1}, 1},
      {{.capacity = 100, .free = 100}, {.quota = 8, .others_wait = true}, 1},
      {{.capacity = 100, .free = 0}, {.quota = 8, .critical = true, .others_wait = true}, 8},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(write_buffer_share(row.pool, row.ask), row.share) << row.pool.free;
  }
}

TEST(PoolShare, AFullerPoolNeverGivesMore) {
  constexpr std::uint64_t kCapacity = 97;
  for (std::uint64_t free = 1; free <= kCapacity; ++free) {
    const PoolFill fuller{.capacity = kCapacity, .free = free - 1};
    const PoolFill emptier{.capacity = kCapacity, .free = free};
    EXPECT_LE(body_lease_share(fuller), body_lease_share(emptier));
    EXPECT_LE(write_buffer_share(fuller, {.quota = 8}), write_buffer_share(emptier, {.quota = 8}));
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
