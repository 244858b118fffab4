#include "source_table.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline server {
namespace {

io::Address address(const std::string& text) {
  return io::parse_socket_name(text)->address;
}

TEST(SourceTable, EachSourceHasItsOwnCap) {
  SourceTable table({.connections = 8, .per_source_max = 2, .secret = {1, 2}});
  const io::Address a = address("192.0.2.1:1000");
  const io::Address b = address("192.0.2.2:1000");
  EXPECT_TRUE(table.enter(a));
  EXPECT_TRUE(table.enter(address("192.0.2.1:2000"))) << "ports do not matter";
  EXPECT_FALSE(table.enter(a));
  EXPECT_TRUE(table.enter(b));
  EXPECT_EQ(table.count_of(a), 2U);
  EXPECT_EQ(table.sources(), 2U);
  table.leave(a);
  EXPECT_TRUE(table.enter(a));
}

TEST(SourceTable, AnIpv6NetworkIsOneSource) {
  SourceTable table({.connections = 8, .per_source_max = 1, .secret = {1, 2}});
  EXPECT_TRUE(table.enter(address("[2001:db8:1:2::1]:80")));
  EXPECT_FALSE(table.enter(address("[2001:db8:1:2:ffff::9]:80")));
  EXPECT_TRUE(table.enter(address("[2001:db8:1:3::1]:80")));
}

TEST(SourceTable, MappedIpv4IsTheIpv4Source) {
  SourceTable table({.connections = 8, .per_source_max = 1, .secret = {1, 2}});
  EXPECT_TRUE(table.enter(address("[::ffff:192.0.2.1]:80")));
  EXPECT_FALSE(table.enter(address("192.0.2.1:80")));
  EXPECT_TRUE(table.enter(address("[::c000:201]:80"))) << "the same number in the other family";
}

TEST(SourceTable, UnixSocketsAreNotCounted) {
  SourceTable table({.connections = 1, .per_source_max = 1, .secret = {1, 2}});
  io::Address local;
  local.family = io::Family::kUnix;
  EXPECT_TRUE(table.enter(local));
  EXPECT_TRUE(table.enter(local));
  table.leave(local);
  EXPECT_EQ(table.sources(), 0U);
  EXPECT_EQ(table.count_of(local), 0U);
}

TEST(SourceTable, AgreesWithAMapThroughAnyChurn) {
  constexpr std::uint32_t kConnections = 64;
  constexpr std::uint32_t kMax = 5;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SourceTable table({.connections = kConnections, .per_source_max = kMax, .secret = {seed, 2}});
    Rng rng(seed);
    std::map<std::uint8_t, std::uint32_t> truth;
    std::vector<std::uint8_t> open;
    const auto source = [](std::uint8_t i) {
      io::Address peer;
      peer.family = i % 2 == 0 ? io::Family::kV4 : io::Family::kV6;
      peer.ip[3] = i;
      return peer;
    };
    for (int step = 0; step < 5000; ++step) {
      if (open.size() < kConnections && rng.chance(0.55)) {
        const auto i = static_cast<std::uint8_t>(rng.below(100));
        ASSERT_EQ(table.enter(source(i)), truth[i] < kMax);
        if (truth[i] < kMax) {
          ++truth[i];
          open.push_back(i);
        }
      } else if (!open.empty()) {
        const auto at = static_cast<std::size_t>(rng.below(open.size()));
        table.leave(source(open[at]));
        --truth[open[at]];
        open[at] = open.back();
        open.pop_back();
      }
      const auto any = static_cast<std::uint8_t>(rng.below(100));
      ASSERT_EQ(table.count_of(source(any)), truth[any]);
    }
    for (const std::uint8_t i : open) table.leave(source(i));
    EXPECT_EQ(table.sources(), 0U);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
