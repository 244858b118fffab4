#include "numbers.h"

#include <cmath>

#include <gtest/gtest.h>

#include "text.h"

namespace weir::app::top {
namespace {

TEST(TopNumbers, AreShortAndHaveTheirUnit) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(3.24), "3.2");
  EXPECT_EQ(count_text(648), "648");
  EXPECT_EQ(count_text(12345), "12.3k");
  EXPECT_EQ(count_text(999999), "1.0M");
  EXPECT_EQ(rate_text(648), "648/s");
  EXPECT_EQ(rate_text(-1), "-");
  EXPECT_EQ(millis_text(0), "-");
  EXPECT_EQ(millis_text(0.42), "0.4 ms");
  EXPECT_EQ(millis_text(23), "23 ms");
  EXPECT_EQ(millis_text(12345), "12 s");
  EXPECT_EQ(duration_text(41.9), "41 s");
  EXPECT_EQ(duration_text(600), "10 min");
  EXPECT_EQ(duration_text(90000), "25 h");
  EXPECT_EQ(bytes_text(532676608), "508 MiB");
  EXPECT_EQ(percent_text(0.41), "41 %");
}

TEST(TopNumbers, AreNeverWide) {
  for (const double sign : {1.0, -1.0}) {
    for (int power = -12; power < 308; ++power) {
      const double value = sign * 9.99 * std::pow(10, power);
      for (const auto text :
           {count_text, rate_text, millis_text, duration_text, bytes_text, percent_text}) {
        EXPECT_LE(text(value).size(), 8U) << value;
      }
    }
  }
  EXPECT_EQ(count_text(std::nan("")), "-");
  EXPECT_EQ(bytes_text(INFINITY), "-");
}

}  // namespace
}  // namespace weir::app::top
