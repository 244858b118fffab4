#include "weir/base/net_address.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

TEST(NetAddress, ReadsEveryForm) {
  struct Case {
    std::string text;
    NetAddressKind kind;
    std::uint16_t port;
    bool can_listen;
    bool can_connect;
  };
  const std::vector<Case> table = {
      {"127.0.0.1:80", NetAddressKind::kIp, 80, true, true},
      {"127.0.0.1:0", NetAddressKind::kIp, 0, true, false},
      {"[::1]:65535", NetAddressKind::kIp, 65535, true, true},
      {":8080", NetAddressKind::kAny, 8080, true, false},
      {"localhost:3000", NetAddressKind::kName, 3000, false, true},
      {"a-b.c_d.example:1", NetAddressKind::kName, 1, false, true},
      {"unix:/run/weir.sock", NetAddressKind::kUnix, 0, true, true},
      {"unix:@weir", NetAddressKind::kUnix, 0, true, true},
  };
  for (const Case& c : table) {
    const auto address = parse_net_address(c.text);
    ASSERT_TRUE(address.has_value()) << c.text;
    EXPECT_EQ(address->kind, c.kind) << c.text;
    EXPECT_EQ(address->port, c.port) << c.text;
    EXPECT_EQ(address->can_listen(), c.can_listen) << c.text;
    EXPECT_EQ(address->can_connect(), c.can_connect) << c.text;
    EXPECT_EQ(to_string(*address), c.text);
  }
  EXPECT_EQ(parse_net_address("*:80").value(), parse_net_address(":80").value());
}

TEST(NetAddress, SaysWhyATextIsNoAddress) {
  const std::vector<std::pair<std::string, NetAddressFault>> table = {
      {"", NetAddressFault::kEmpty},
      {"127.0.0.1", NetAddressFault::kNoPort},
      {"[::1]", NetAddressFault::kNoPort},
      {"8080", NetAddressFault::kNoPort},
      {"127.0.0.1:", NetAddressFault::kBadPort},
      {"127.0.0.1:x", NetAddressFault::kBadPort},
      {"127.0.0.1:65536", NetAddressFault::kBadPort},
      {"127.0.0.1:-1", NetAddressFault::kBadPort},
      {"127.0.0.1:+1", NetAddressFault::kBadPort},
      {"::1:80", NetAddressFault::kBadHost},
      {"127.0.0.300:80", NetAddressFault::kBadHost},
      {"[127.0.0.1]:80", NetAddressFault::kBadHost},
      {"-a:80", NetAddressFault::kBadHost},
      {"a..b:80", NetAddressFault::kBadHost},
      {"a b:80", NetAddressFault::kBadHost},
      {"http://a:80", NetAddressFault::kBadHost},
      {std::string(64, 'a') + ":80", NetAddressFault::kBadHost},
      {"unix:", NetAddressFault::kBadPath},
      {"unix:@", NetAddressFault::kBadPath},
      {"unix:relative", NetAddressFault::kBadPath},
      {"unix:/" + std::string(107, 'a'), NetAddressFault::kBadPath},
      {std::string("unix:/a\0b", 9), NetAddressFault::kBadPath},
  };
  for (const auto& [text, fault] : table) {
    const auto address = parse_net_address(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(name_of(address.error()), name_of(fault)) << text;
  }
}

TEST(NetAddress, RandomTextGivesAnAddressThatReadsBackOrAFault) {
  constexpr std::string_view kAlphabet = "a1.:[]@/-* unix0";
  Rng rng(3);
  int read = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (std::uint64_t n = rng.below(12); n > 0; --n)
      text += kAlphabet[rng.below(kAlphabet.size())];
    if (rng.below(2) == 0) text += ":80";
    const auto address = parse_net_address(text);
    if (!address) continue;
    ++read;
    ASSERT_EQ(parse_net_address(to_string(*address)).value(), *address) << text;
  }
  EXPECT_GT(read, 1000);
}

TEST(NetAddress, KnowsWhatOnlyThisMachineReaches) {
  for (const char* text :
       {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/run/x.sock"}) {
    EXPECT_TRUE(parse_net_address(text)->is_loopback()) << text;
  }
  for (const char* text : {":1", "10.0.0.1:1", "[::]:1", "[2001:db8::1]:1", "localhost:1"}) {
    EXPECT_FALSE(parse_net_address(text)->is_loopback()) << text;
  }
}

}  // namespace
}  // namespace weir
