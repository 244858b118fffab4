#include "weir/base/byte_size.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

TEST(ByteSize, ReadsEveryUnit) {
  const std::vector<std::pair<std::string_view, std::uint64_t>> table = {
      {"0", 0},
      {"17", 17},
      {"17B", 17},
      {"1kB", 1'000},
      {"1KB", 1'000},
      {"32 KB", 32'000},
      {"3MB", 3'000'000},
      {"3GB", 3'000'000'000},
      {"2TB", 2'000'000'000'000},
      {"1KiB", 1'024},
      {"32KiB", 32'768},
      {"5 MiB", 5'242'880},
      {"4GiB", 4'294'967'296},
      {"4gib", 4'294'967'296},
      {"1TIB", 1'099'511'627'776},
      {"1   b", 1},
      {"007", 7},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
      {"16777215TiB", 16'777'215ULL << 40U},
  };
  for (const auto& [text, bytes] : table) {
    const auto parsed = parse_byte_size(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->bytes(), bytes) << text;
  }
}

TEST(ByteSize, RefusesEverythingElseWithAReason) {
  const std::vector<std::pair<std::string_view, ByteSizeFault>> table = {
      {"", ByteSizeFault::kEmpty},
      {" ", ByteSizeFault::kNotANumber},
      {" 1", ByteSizeFault::kNotANumber},
      {"x", ByteSizeFault::kNotANumber},
      {"KiB", ByteSizeFault::kNotANumber},
      {"-1", ByteSizeFault::kNotANumber},
      {"+1", ByteSizeFault::kNotANumber},
      {"1.5GiB", ByteSizeFault::kNotWhole},
      {"1.", ByteSizeFault::kNotWhole},
      {"4K", ByteSizeFault::kUnknownUnit},
      {"4M", ByteSizeFault::kUnknownUnit},
      {"1 ", ByteSizeFault::kUnknownUnit},
      {"1KiB ", ByteSizeFault::kUnknownUnit},
      {"1KiBx", ByteSizeFault::kUnknownUnit},
      {"1 2", ByteSizeFault::kUnknownUnit},
      {"0x10", ByteSizeFault::kUnknownUnit},
      {"1e3", ByteSizeFault::kUnknownUnit},
      {"1PiB", ByteSizeFault::kUnknownUnit},
      {std::string_view("1\0", 2), ByteSizeFault::kUnknownUnit},
      {"99999999999999999999 apples", ByteSizeFault::kUnknownUnit},
      {"18446744073709551616", ByteSizeFault::kOverflow},
      {"18446744073709551615KiB", ByteSizeFault::kOverflow},
      {"16777216TiB", ByteSizeFault::kOverflow},
      {"18446744073709552kB", ByteSizeFault::kOverflow},
  };
  for (const auto& [text, fault] : table) {
    const auto parsed = parse_byte_size(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(name_of(parsed.error()), name_of(fault)) << text;
  }
}

TEST(ByteSize, PrintsTheLargestExactBinaryUnit) {
  EXPECT_EQ(to_string(ByteSize(0)), "0B");
  EXPECT_EQ(to_string(ByteSize(1000)), "1000B");
  EXPECT_EQ(to_string(kib(1)), "1KiB");
  EXPECT_EQ(to_string(kib(1536)), "1536KiB");
  EXPECT_EQ(to_string(gib(4)), "4GiB");
  EXPECT_EQ(to_string(gib(2048)), "2TiB");
  EXPECT_EQ(to_string(gib(4) + ByteSize(1)), "4294967297B");
  EXPECT_EQ(to_string(ByteSize::max()), "18446744073709551615B");
}

TEST(ByteSize, PrintsForPeopleWithOneDecimal) {
  EXPECT_EQ(to_human(ByteSize(0)), "0 B");
  EXPECT_EQ(to_human(ByteSize(1023)), "1023 B");
  EXPECT_EQ(to_human(kib(1)), "1.0 KiB");
  EXPECT_EQ(to_human(ByteSize(1536)), "1.5 KiB");
  EXPECT_EQ(to_human(mib(815) + kib(200)), "815.2 MiB");
  EXPECT_EQ(to_human(mib(1) - ByteSize(1)), "1.0 MiB");  // not "1024.0 KiB"
  EXPECT_EQ(to_human(gib(1) - ByteSize(1)), "1.0 GiB");
  EXPECT_EQ(to_human(ByteSize(1024 * 1024 - 52)), "1023.9 KiB");
  EXPECT_EQ(to_human(ByteSize(2047)), "2.0 KiB");
  EXPECT_EQ(to_human(gib(1024)), "1.0 TiB");
  EXPECT_EQ(to_human(ByteSize::max()), "16777216.0 TiB");
}

TEST(ByteSize, WhatIsPrintedReadsBackExactly) {
  Rng rng(51);
  for (int i = 0; i < 20'000; ++i) {
    const ByteSize size(rng.next_u64() >> rng.below(64) << rng.below(20));
    const auto parsed = parse_byte_size(to_string(size));
    ASSERT_TRUE(parsed.has_value()) << to_string(size);
    ASSERT_EQ(*parsed, size);
  }
}

TEST(ByteSize, ArbitraryBytesNeverConfuseTheParser) {
  Rng rng(52);
  constexpr std::string_view kAlphabet = "0123456789kKmMgGtTiIbB .-+x\xFF";
  for (int i = 0; i < 50'000; ++i) {
    std::string text(rng.below(12), ' ');
    for (char& c : text) c = kAlphabet[rng.below(kAlphabet.size())];
    const auto parsed = parse_byte_size(text);
    if (parsed) {
      ASSERT_EQ(*parse_byte_size(to_string(*parsed)), *parsed) << text;
    } else {
      ASSERT_FALSE(name_of(parsed.error()).empty());
    }
  }
}

TEST(ByteSize, ArithmeticSaturates) {
  EXPECT_EQ(kib(1) + ByteSize(1), ByteSize(1025));
  EXPECT_EQ(ByteSize::max() + ByteSize(1), ByteSize::max());
  EXPECT_EQ(ByteSize(5) - ByteSize(3), ByteSize(2));
  EXPECT_EQ(ByteSize(3) - ByteSize(5), ByteSize(0));
  EXPECT_EQ(gib(1) * 3, gib(3));
  EXPECT_EQ(gib(1) * (std::uint64_t{1} << 34U), ByteSize::max());
  EXPECT_EQ(gib(1) * 0, ByteSize(0));
  EXPECT_EQ(gib(std::numeric_limits<std::uint64_t>::max()), ByteSize::max());
  EXPECT_LT(kib(1023), mib(1));
}

}  // namespace
}  // namespace weir
