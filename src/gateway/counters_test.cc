#include "counters.h"

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(Counters, TotalsAreSumsOverLoopsUpstreamsAndReasons) {
  std::array<LoopCounters, 2> loops;
  std::array<UpstreamCounters, 3> upstreams;
  loops[0].received.add(10);
  loops[1].received.add(5);
  upstreams[0].answered[1].add(4);
  upstreams[1].answered[4].add(3);
  loops[0].none.refused[GatewayReason(GatewayRefusal::kNoRoute).index()].add(2);
  upstreams[2].refused[GatewayReason(Reason::kOverload).index()].add(1);
  upstreams[2].aborted[0].add(1);
  RequestTotals totals;
  for (const UpstreamCounters& one : upstreams) totals.add(one);
  for (const LoopCounters& one : loops) totals.add(one);
  EXPECT_EQ(totals.received, 15U);
  EXPECT_EQ(totals.answered, 7U);
  EXPECT_EQ(totals.refused, 3U);
  EXPECT_EQ(totals.aborted, 1U);
  EXPECT_EQ(totals.active(), 4U);
}

TEST(Counters, NothingIsActiveWhenTheEndsWereReadFirst) {
  RequestTotals totals;
  totals.received = 1;
  totals.answered = 2;
  EXPECT_EQ(totals.active(), 0U);
}

}  // namespace
}  // namespace weir::gateway
