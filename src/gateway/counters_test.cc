#include "counters.h"

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(Counters, TotalsAreSumsOverLoopsUpstreamsAndReasons) {
  std::vector<std::unique_ptr<LoopCounters>> loops;
  for (int i = 0; i < 2; ++i) loops.push_back(std::make_unique<LoopCounters>(2));
  loops[0]->received.add(10);
  loops[1]->received.add(5);
  loops[0]->upstreams[0]->answered[1].add(4);
  loops[1]->upstreams[1]->answered[4].add(3);
  loops[0]->upstreams[2]->refused[GatewayReason(GatewayRefusal::kNoRoute).index()].add(2);
  loops[1]->upstreams[0]->refused[GatewayReason(Reason::kOverload).index()].add(1);
  loops[1]->upstreams[0]->aborted[0].add(1);
  const RequestTotals totals = totals_of(loops);
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
