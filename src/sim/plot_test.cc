#include <gtest/gtest.h>

#include "report.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

TEST(Plot, ShowsEveryThingAUserAsksAbout) {
  const Scenario s = scenario_of(scenario_file("low-class-spike-12x"));
  const std::string svg = plot_svg(s, run_scenario(s));
  for (const char* text :
       {"offered, high", "goodput, low", "shed, high", "99th percentile", "limit in force (auto)",
        "in flight", "calls per second", "milliseconds, log scale", ">seconds<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_LT(svg.size(), 200000U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Plot, AGroupHasOnePanelAndShowsRoomWaitAndBaseline) {
  const Scenario s = scenario_of(kPlain, {"service.api.gateways=4", "duration=5s"});
  const std::string svg = plot_svg(s, run_scenario(s));
  EXPECT_NE(svg.find("gateways of api: limit in force (auto)"), std::string::npos);
  EXPECT_NE(svg.find("sums of 4"), std::string::npos);
  EXPECT_EQ(svg.find("api-gateway-2"), std::string::npos);
  for (const char* text : {">room wait<", ">baseline<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST(Plot, MarksFaults) {
  const Scenario s = scenario_of(scenario_file("outage-10s"));
  EXPECT_NE(plot_svg(s, run_scenario(s)).find("api paused"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
