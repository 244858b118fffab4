#include "chart.h"

#include <gtest/gtest.h>

namespace weir::app::top {
namespace {

TEST(TopChart, DrawsEighthsAndNeverHidesAValue) {
  EXPECT_EQ(columns({0, 1, 4, 8, 0.001, -3, 99}, 8, 1, Style::kPlain)[0].plain(), " ▁▄█▁ █");
  const Block two = columns({8, 16, 12}, 16, 2, Style::kPlain);
  EXPECT_EQ(two[0].plain(), " █▄");
  EXPECT_EQ(two[1].plain(), "███");
  EXPECT_EQ(columns({1, 2}, 0, 1, Style::kPlain)[0].plain(), "▁▁");
}

TEST(TopChart, FillsAGaugeAroundItsText) {
  EXPECT_EQ(gauge(0.5, 12), "[█████     ]");
  EXPECT_EQ(gauge(2, 12, "41|44"), "[█████41|44]");
  EXPECT_EQ(gauge(0, 4, "41|44"), "[4…]");
}

TEST(TopChart, SqueezesAQuarterOfAnHour) {
  EXPECT_EQ(squeezed({1, 2, 3, 4, 5}, 3, false), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(squeezed({9, 2, 3, 4, 5}, 3, true), (std::vector<double>{9, 3, 5}));
  EXPECT_EQ(squeezed({1, 2}, 3, true), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace weir::app::top
