#include "weir/base/ip_range.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

TEST(IpAddress, ReadsAndPrintsCanonicalText) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"0.0.0.0", "0.0.0.0"},
      {"192.0.2.255", "192.0.2.255"},
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"fe80::0001:2", "fe80::1:2"},
      {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
      {"::ffff:10.1.2.3", "::ffff:10.1.2.3"},
      {"::ffff:0a01:0203", "::ffff:10.1.2.3"},
  };
  for (const auto& [text, canonical] : table) {
    const auto address = parse_ip(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(to_string(*address), canonical) << text;
    EXPECT_EQ(parse_ip(canonical), address) << text;
  }
}

TEST(IpAddress, RefusesWhatIsNoAddress) {
  for (const std::string_view text : {"",
                                      " ",
                                      "1",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.256",
                                      "1.2.3.-4",
                                      "1.2.3.+4",
                                      "01.2.3.4",
                                      "1.2.3.4 ",
                                      "1.2.3.4:80",
                                      "1..3.4",
                                      "a.b.c.d",
                                      ":",
                                      ":::",
                                      "1:2",
                                      "1:2:3:4:5:6:7:8:9",
                                      "1::2::3",
                                      "1:2:3:4:5:6:7:8::",
                                      "::1:2:3:4:5:6:7:8",
                                      "12345::",
                                      "g::",
                                      "1:2:3:4:5:6:7:",
                                      ":1:2:3:4:5:6:7",
                                      "1.2.3.4::",
                                      "::1.2.3",
                                      "::1.2.3.4:5",
                                      "fe80::1%eth0",
                                      "[::1]"}) {
    EXPECT_FALSE(parse_ip(text).has_value()) << text;
  }
}

TEST(IpAddress, EveryAddressReadsBackFromItsText) {
  Rng rng(7);
  for (int i = 0; i < 20000; ++i) {
    IpAddress address;
    address.v6 = rng.below(2) == 1;
    const std::size_t size = address.v6 ? 16 : 4;
    for (std::size_t b = 0; b < size; ++b) {  // many zeros, so that "::" occurs everywhere
      address.bytes[b] = rng.below(3) == 0 ? static_cast<std::uint8_t>(rng.below(256)) : 0;
    }
    ASSERT_EQ(parse_ip(to_string(address)), address) << to_string(address);
  }
}

bool contains(std::string_view range, std::string_view address) {
  return parse_ip_range(range).value().contains(*parse_ip(address));
}

TEST(IpRange, ContainsWhatSharesItsPrefix) {
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(contains("192.0.2.128/25", "192.0.2.255"));
  EXPECT_FALSE(contains("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.2"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(contains("0.0.0.0/0", "255.255.255.255"));
  EXPECT_TRUE(contains("::/0", "2001::"));
}

TEST(IpRange, FamiliesDoNotMixButMappedAddressesAreV4) {
  EXPECT_FALSE(contains("::/0", "10.0.0.1"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(contains("::/0", "::ffff:10.1.2.3"));
  EXPECT_TRUE(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_EQ(to_string(*parse_ip_range("::ffff:10.0.0.0/104")), "10.0.0.0/8");
}

TEST(IpRange, EveryPrefixLengthAgreesWithABitByBitCompare) {
  Rng rng(11);
  for (int i = 0; i < 20000; ++i) {
    const bool v6 = rng.below(2) == 1;
    const std::uint32_t width = v6 ? 128 : 32;
    const auto bits = static_cast<std::uint32_t>(rng.below(width + 1));
    IpRange range;
    range.base.v6 = v6;
    range.bits = static_cast<std::uint8_t>(bits);
    IpAddress address;
    address.v6 = v6;
    bool same = true;
    for (std::uint32_t b = 0; b < width; ++b) {
      const unsigned own = b < bits ? static_cast<unsigned>(rng.below(2)) : 0U;
      const unsigned flip = rng.below(width * 2) == 0 ? 1U : 0U;
      range.base.bytes[b / 8] =
          static_cast<std::uint8_t>(range.base.bytes[b / 8] | own << (7U - b % 8U));
      const unsigned theirs = b < bits ? own ^ flip : static_cast<unsigned>(rng.below(2));
      address.bytes[b / 8] =
          static_cast<std::uint8_t>(address.bytes[b / 8] | theirs << (7U - b % 8U));
      if (b < bits && flip != 0) same = false;
    }
    ASSERT_EQ(range.contains(address), same) << to_string(range) << " " << to_string(address);
    ASSERT_EQ(parse_ip_range(to_string(range)).value(), range);
  }
}

TEST(IpRange, SaysWhyATextIsNoRange) {
  const std::vector<std::pair<std::string_view, IpRangeFault>> table = {
      {"", IpRangeFault::kBadAddress},
      {"localhost/8", IpRangeFault::kBadAddress},
      {"10.0.0.0/", IpRangeFault::kBadLength},
      {"10.0.0.0/33", IpRangeFault::kBadLength},
      {"::/129", IpRangeFault::kBadLength},
      {"10.0.0.0/08", IpRangeFault::kBadLength},
      {"10.0.0.0/8/8", IpRangeFault::kBadLength},
      {"10.0.0.1/8", IpRangeFault::kHostBits},
      {"2001:db8::1/64", IpRangeFault::kHostBits}};
  for (const auto& [text, fault] : table) {
    const auto range = parse_ip_range(text);
    ASSERT_FALSE(range.has_value()) << text;
    EXPECT_EQ(range.error(), fault) << text;
  }
}

TEST(IpText, IsTheSameTextInPlace) {
  for (const char* text : {"0.0.0.0", "255.255.255.255", "::", "2001:db8::1",
                           "::ffff:255.255.255.255", "2001:db8:1111:2222:3333:4444:5555:6666"}) {
    const auto address = parse_ip(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(text_of(*address).view(), text);
    EXPECT_EQ(to_string(*address), text);
  }
}

}  // namespace
}  // namespace weir
