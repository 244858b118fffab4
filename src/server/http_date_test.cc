#include "http_date.h"

#include <array>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline server {
namespace {

std::string date_of(std::int64_t seconds) {
  std::array<char, kHttpDateBytes> text{};
  write_http_date(seconds, text);
  return {text.data(), text.size()};
}

TEST(HttpDate, WritesTheFormOfTheStandard) {
  EXPECT_EQ(date_of(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_of(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date_of(1'709'164'799), "Wed, 28 Feb 2024 23:59:59 GMT");
  EXPECT_EQ(date_of(1'709'164'800), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(HttpDate, AgreesWithTheCLibrary) {
  Rng rng(1);
  for (int i = 0; i < 10'000; ++i) {
    const std::time_t time = rng.between(0, 4'000'000'000);
    std::tm parts{};
    gmtime_r(&time, &parts);
    char expected[64];
    std::strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    ASSERT_EQ(date_of(time), expected);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
