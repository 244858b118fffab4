#include "weir/base/number_text.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace weir::inline v0 {
namespace {

TEST(NumberText, ReadsAWholeTextOrNothing) {
  EXPECT_EQ(parse_number<std::uint32_t>("0"), 0U);
  EXPECT_EQ(parse_number<std::int64_t>("-17"), -17);
  EXPECT_EQ(parse_number<std::uint32_t>("ff", 16), 255U);
  EXPECT_EQ(parse_number<double>("0.5"), 0.5);
  for (const std::string_view bad : {"", " 1", "1 ", "1x", "x", "+1", "0x1", "-", "1,0"}) {
    EXPECT_EQ(parse_number<std::uint32_t>(bad), std::nullopt) << bad;
  }
}

TEST(NumberText, RefusesWhatTheTypeCannotHold) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
}

TEST(NumberText, PrintsWhatItReadsBack) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1234567}, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_EQ(parse_number<std::uint64_t>(NumberText(value).view()), value);
  }
  for (const double value : {0.1, -1e300, 5e-324, 123456789.125}) {
    EXPECT_EQ(parse_number<double>(NumberText(value).view()), value);
  }
  EXPECT_EQ(NumberText(std::numeric_limits<std::int64_t>::min()).view(), "-9223372036854775808");
  EXPECT_EQ(NumberText(48879U, 16).view(), "beef");
}

}  // namespace
}  // namespace weir::inline v0
