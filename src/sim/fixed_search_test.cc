#include "fixed_search.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

TEST(FixedSearch, TheSearchFindsTheLimitThatIsBestByConstruction) {
  // Callers leave after 60 ms: a limit much above 8 × 60/10 makes every answer late, one below 8
  // leaves workers idle.
  const Scenario s =
      scenario_of(kPlain, {"duration=15s", "settle=3s", "load.web.rate=2000",
                           "load.web.timeout=60ms", "load.web.cancels=false",
                           "service.api.time=10ms", "service.api.admission.normal_wait_max_ms=0"});
  const FixedSearch found = search_fixed(s, nullptr);
  EXPECT_GE(found.limit, 8U);
  EXPECT_LE(found.limit, 48U);
  EXPECT_NEAR(found.goodput, 800, 20);
  EXPECT_GE(found.own_goodput, 0.95 * found.goodput);
  EXPECT_NE(printed(s, found).find("best fixed limit"), std::string::npos);
}

TEST(FixedSearch, EveryPhaseHasItsOwnBestLimitAlsoBeyond1024) {
  // Constant service times: what the best limit gets is what the workers can do.
  const Scenario s =
      scenario_of(std::string(kPlain) +
                      "[[service.fault]]\nat = \"4s\"\nkind = \"workers\"\n"
                      "workers = 2000\n"
                      "[[phase]]\nname = \"few\"\nlatency_max = 0\nfrom = \"2s\"\nto = \"4s\"\n"
                      "oracle = { limit = 8, goodput = 800 }\n"
                      "[[phase]]\nname = \"many\"\nlatency_max = 0\nfrom = \"5s\"\nto = \"8s\"\n"
                      "oracle = { limit = 2000, goodput = 9 }\n",
                  {"duration=8s", "drain=1s", "load.web.rate=2500", "service.api.time=1s",
                   "service.api.workers=100"});
  const FixedSearch found = search_fixed(s, nullptr);
  ASSERT_EQ(found.phases.size(), 2U);
  EXPECT_NEAR(found.phases[0].goodput, 100, 5);
  EXPECT_GT(found.phases[1].limit, 1024U);
  EXPECT_NEAR(found.phases[1].goodput, 2000, 100);
  EXPECT_FALSE(found.oracles_hold(s));
  EXPECT_NE(printed(s, found).find("phase many"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
