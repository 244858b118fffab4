#include "policy/worst_blocked.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BlockedRule kBlockedRule{.grace = seconds(1), .least_each = milliseconds(20)};

struct BlockedCase {
  const char* name;
  std::vector<BlockedClient> clients;
  std::size_t loses;
};

TEST(WorstBlocked, Table) {
  const std::vector<BlockedCase> cases = {
      {"nobody is there", {}, 0},
      {"nobody is blocked", {{1, {}}, {2, {}}}, 2},
      {"one within the grace", {{1, milliseconds(999)}}, 1},
      {"one beyond it", {{1, seconds(1)}}, 0},
      {"the longest of one address", {{1, seconds(2)}, {1, seconds(3)}, {1, seconds(1)}}, 1},
      {"the address that wastes most, though another connection wastes more",
       {{1, seconds(5)}, {2, seconds(3)}, {2, seconds(4)}},
       2},
      {"many of one address that are within the grace each",
       {{1, milliseconds(500)}, {1, milliseconds(600)}, {2, milliseconds(900)}},
       1},
      {"many of one address that are hardly blocked at all",
       std::vector<BlockedClient>(100, {1, milliseconds(19)}), 100},
      {"two that are together worse than the longest",
       {{1, milliseconds(10)}, {1, milliseconds(995)}, {2, seconds(1)}},
       1},
  };
  for (const BlockedCase& one : cases) {
    SCOPED_TRACE(one.name);
    EXPECT_EQ(worst_blocked(one.clients, kBlockedRule), one.loses);
  }
}

TEST(WorstBlocked, EndsTheWorstFirstUntilEveryAddressIsWithinItsGrace) {
  Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<BlockedClient> clients(rng.below(60));
    for (BlockedClient& client : clients) {
      client.source = static_cast<std::uint8_t>(rng.below(8));
      client.time = milliseconds(rng.below(800));
    }
    const auto sum_of = [&](std::uint8_t source) {
      Duration sum{};
      for (const BlockedClient& client : clients) {
        if (client.source == source) sum += client.time;
      }
      return sum;
    };
    Duration last = Duration::max();
    std::size_t ended = 0;
    for (;; ++ended) {
      const std::size_t worst = worst_blocked(clients, kBlockedRule);
      if (worst == clients.size()) break;
      ASSERT_LT(ended, clients.size()) << "it comes to an end";
      BlockedClient& loser = clients[worst];
      const Duration sum = sum_of(loser.source);
      EXPECT_GE(sum, kBlockedRule.grace);
      EXPECT_GE(loser.time, kBlockedRule.least_each);
      EXPECT_LE(sum, last) << "the next one is never worse";
      for (const BlockedClient& other : clients) {
        if (other.source == loser.source) {
          EXPECT_LE(other.time, loser.time);
        }
        if (other.time >= kBlockedRule.least_each) {
          EXPECT_LE(sum_of(other.source), sum);
        }
      }
      last = sum;
      loser.time = {};
    }
    for (const BlockedClient& client : clients) {
      EXPECT_TRUE(client.time < kBlockedRule.least_each ||
                  sum_of(client.source) < kBlockedRule.grace);
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
