#include "policy/body_window.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr PoolFill kAllFree{.capacity = 256, .free = 256};
constexpr Duration kFast = std::chrono::milliseconds(50);

TEST(BodyWindow, FollowsTheTable) {
  struct Row {
    WindowUse use;
    PoolFill pool;
    std::uint32_t leases;
  };
  constexpr Duration kRound = kWindowRound;
  constexpr Row kRows[] = {
      {{.leases = 1, .used_up_in = kFast}, kAllFree, 2},
      {{.leases = 2, .used_up_in = kFast}, kAllFree, 4},
      {{.leases = 9, .used_up_in = kFast}, kAllFree, 16},
      {{.leases = 16, .used_up_in = kFast}, kAllFree, 16},
      {{.leases = 4, .used_up_in = kRound - Duration(1)}, kAllFree, 8},
      {{.leases = 4, .used_up_in = kRound}, kAllFree, 4},
      {{.leases = 4, .used_up_in = 4 * kRound}, kAllFree, 4},
      {{.leases = 4, .used_up_in = 4 * kRound + Duration(1)}, kAllFree, 2},
      {{.leases = 1, .used_up_in = 100 * kRound}, kAllFree, 1},
      {{.leases = 4, .used_up_in = kFast, .handler_kept_up = false}, kAllFree, 4},
      // 196 are 192 and the four that it would take.
      {{.leases = 4, .used_up_in = kFast}, {.capacity = 256, .free = 197}, 8},
      {{.leases = 4, .used_up_in = kFast}, {.capacity = 256, .free = 196}, 4},
      {{.leases = 16, .used_up_in = kFast}, {.capacity = 256, .free = 129}, 16},
      {{.leases = 16, .used_up_in = kFast}, {.capacity = 256, .free = 128}, 1},
      {{.leases = 1, .used_up_in = kFast}, {.capacity = 1, .free = 0}, 1},
      {{.leases = 1, .used_up_in = kFast}, {.capacity = 0, .free = 0}, 1},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(window_leases(row.use, row.pool), row.leases)
        << row.use.leases << " leases, " << row.pool.free << " free";
  }
}

TEST(BodyWindow, IsBoundedAndNeverGrowsIntoThreeQuartersOfThePool) {
  Rng rng(11);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t capacity = rng.below(600);
    const PoolFill pool{.capacity = capacity, .free = rng.below(capacity + 1)};
    const WindowUse use{.leases = static_cast<std::uint32_t>(rng.between(1, kWindowLeasesMax)),
                        .used_up_in = Duration(rng.between(0, 5'000'000'000)),
                        .handler_kept_up = rng.chance(0.8)};
    const std::uint32_t leases = window_leases(use, pool);
    ASSERT_GE(leases, 1U);
    ASSERT_LE(leases, kWindowLeasesMax);
    if (leases <= use.leases) continue;
    ASSERT_TRUE(use.handler_kept_up);
    ASSERT_LT(use.used_up_in, kWindowRound);
    ASSERT_GT(4 * (pool.free - (leases - use.leases)), 3 * capacity);
  }
}

// A stream whose client fills a link of 50 ms: the window doubles until the link is full.
TEST(BodyWindow, GrowsUntilARoundTripFitsAndNoFurther) {
  constexpr double kLeaseBytes = 65'536;
  constexpr double kRoundTrip = 0.05;
  for (const double link : {1e6, 1e7, 1e8}) {  // bytes a second
    std::uint32_t leases = 1;
    for (int round = 0; round < 20; ++round) {
      const double window = leases * kLeaseBytes;
      const double seconds = std::max(kRoundTrip, window / link);
      leases = window_leases(
          {.leases = leases, .used_up_in = Duration(static_cast<std::int64_t>(seconds * 1e9))},
          kAllFree);
    }
    EXPECT_GE(leases * kLeaseBytes, std::min(link * kRoundTrip, kLeaseBytes * kWindowLeasesMax));
    EXPECT_LE(leases * kLeaseBytes, std::max(2 * link * to_seconds(kWindowRound), kLeaseBytes));
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
