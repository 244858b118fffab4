#include "chart.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Chart, StepsAreRoundNumbers) {
  EXPECT_DOUBLE_EQ(nice_step(100, 10), 10);
  EXPECT_DOUBLE_EQ(nice_step(60, 10), 10);
  EXPECT_DOUBLE_EQ(nice_step(45, 10), 5);
  EXPECT_DOUBLE_EQ(nice_step(3200, 4), 1000);
  EXPECT_DOUBLE_EQ(nice_step(0.9, 4), 0.25);
}

TEST(Chart, HasTitleAxesUnitsAndLegend) {
  Chart chart;
  chart.title = "A < B & C";
  chart.subtitle = "sub";
  chart.seconds_per_point = 2;
  chart.marks = {{4, 8, "down"}};
  chart.panels = {{"Panel",
                   "calls per second",
                   false,
                   {{"goodput", "#123456", "", false, false, {1, 5, 2, 4, 4, 3}}}}};
  const std::string svg = chart.to_svg();
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_NE(svg.find("A &lt; B &amp; C"), std::string::npos);
  for (const char* text : {">Panel<", ">calls per second<", ">goodput<", ">seconds<", ">down<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(count(svg, "<path "), 1U);
  EXPECT_EQ(count(svg, "<text "), count(svg, "</text>"));
}

TEST(Chart, ALineIsInterruptedWhereThereIsNothing) {
  Chart chart;
  chart.panels = {{"p", "u", true, {{"l", "#000000", "", false, false, {1, 10, -1, 100, 0, 5}}}}};
  const std::string svg = chart.to_svg();
  const std::size_t path = svg.find("<path d=\"");
  const std::string d = svg.substr(path, svg.find('"', path + 9) - path);
  EXPECT_EQ(count(d, "M"), 3U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Chart, EmptyPanelsAreDrawnWithoutNonsense) {
  Chart chart;
  chart.panels = {{"empty", "u", false, {}},
                  {"zeros", "u", true, {{"l", "#000", "", false, false, {0, 0}}}}};
  const std::string svg = chart.to_svg();
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
