#include "weir/base/duration_text.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, ReadsEveryUnit) {
  const std::vector<std::pair<std::string_view, Duration>> table = {
      {"0s", 0s},
      {"5ns", 5ns},
      {"7us", 7us},
      {"500ms", 500ms},
      {"500 ms", 500ms},
      {"2s", 2s},
      {"3m", 3min},
      {"1h", 1h},
      {"007s", 7s},
      {"90s", 90s},
      {"0ns", 0ns},
      {"1  s", 1s},
      {"2562047h", 2562047h},
      {"9223372036854775807ns", Duration::max()},
  };
  for (const auto& [text, expected] : table) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(DurationText, RefusesEverythingElseWithAReason) {
  const std::vector<std::pair<std::string_view, DurationFault>> table = {
      {"", DurationFault::kEmpty},
      {"s", DurationFault::kNotANumber},
      {"-1s", DurationFault::kNotANumber},
      {"+1s", DurationFault::kNotANumber},
      {" 1s", DurationFault::kNotANumber},
      {"1.5s", DurationFault::kNotWhole},
      {"500", DurationFault::kMissingUnit},
      {"500 ", DurationFault::kMissingUnit},
      {"99999999999999999999", DurationFault::kMissingUnit},
      {"1m30s", DurationFault::kUnknownUnit},
      {"1S", DurationFault::kUnknownUnit},
      {"1M", DurationFault::kUnknownUnit},
      {"1d", DurationFault::kUnknownUnit},
      {"1s ", DurationFault::kUnknownUnit},
      {"1\xC2\xB5s", DurationFault::kUnknownUnit},
      {"9223372036854775808ns", DurationFault::kOverflow},
      {"9223372037s", DurationFault::kOverflow},
      {"2562048h", DurationFault::kOverflow},
      {"99999999999999999999ns", DurationFault::kOverflow},
  };
  for (const auto& [text, fault] : table) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(name_of(parsed.error()), name_of(fault)) << text;
  }
}

TEST(DurationText, PrintsTheShortestExactForm) {
  EXPECT_EQ(to_string(Duration(0)), "0s");
  EXPECT_EQ(to_string(Duration(500ms)), "500ms");
  EXPECT_EQ(to_string(Duration(1500ms)), "1500ms");
  EXPECT_EQ(to_string(Duration(90s)), "90s");
  EXPECT_EQ(to_string(Duration(120s)), "2m");
  EXPECT_EQ(to_string(Duration(48h)), "48h");
  EXPECT_EQ(to_string(Duration(1001ns)), "1001ns");
  EXPECT_EQ(to_string(Duration(-5ms)), "-5ms");
  EXPECT_EQ(to_string(Duration::min()), "-9223372036854775808ns");
}

TEST(DurationText, WhatIsPrintedReadsBackExactly) {
  Rng rng(61);
  constexpr std::int64_t kUnits[] = {1, 1'000, 1'000'000, 1'000'000'000, 60'000'000'000};
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t unit = kUnits[rng.below(5)];
    const Duration duration(rng.between(0, Duration::max().count() / unit) * unit);
    const auto parsed = parse_duration(to_string(duration));
    ASSERT_TRUE(parsed.has_value()) << to_string(duration);
    ASSERT_EQ(*parsed, duration);
  }
}

}  // namespace
}  // namespace weir
