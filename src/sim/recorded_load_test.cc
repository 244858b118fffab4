#include "recorded_load.h"

#include <gtest/gtest.h>

namespace weir::inline v0::sim {
namespace {

using policy::DecisionEnd;
using policy::RecordedDecision;
using std::chrono::milliseconds;
using std::chrono::seconds;

RecordedDecision served(std::int64_t at_ms, std::int64_t latency_ms) {
  RecordedDecision one;
  one.at = milliseconds(at_ms);
  one.latency = milliseconds(latency_ms);
  one.scope = 3;
  one.end = DecisionEnd::kOk;
  return one;
}

RecordedDecision refused(std::int64_t at_ms, Reason reason) {
  RecordedDecision one = served(at_ms, 0);
  one.end = DecisionEnd::kRefused;
  one.reason = static_cast<std::uint8_t>(reason);
  return one;
}

// What began before the first record ended, or had not ended at the last, is not all there.
TEST(RecordedLoad, TheWindowHoldsOnlyTimesOfWhichEverythingWasRecorded) {
  policy::Recording recording;
  recording.decisions.push_back(served(0, 100));
  for (int i = 1; i < 100; ++i) recording.decisions.push_back(served(i * 100, 50));
  const RecordedLoad load = load_of_scope(recording, 3);
  EXPECT_EQ(load.from, Duration(milliseconds(100)));
  EXPECT_EQ(load.to, Duration(milliseconds(9950 - 50)));
  EXPECT_EQ(load.decisions.size(), 98U);
  EXPECT_GT(load.settle, Duration(0));
  EXPECT_TRUE(load_of_scope(recording, 4).decisions.empty());
}

TEST(RecordedLoad, LeavesOutWhatTheSimulatorHasNoInputFor) {
  policy::Recording recording;
  for (int i = 0; i < 50; ++i) recording.decisions.push_back(served(i * 10, 5));
  recording.decisions.push_back(refused(100, Reason::kMemory));
  recording.decisions.push_back(refused(100, Reason::kDeadline));
  recording.decisions.push_back(refused(100, Reason::kOverload));
  RecordedDecision own = refused(100, Reason::kOverload);
  own.reason = kReasonCount + 2;  // one of the gateway's
  recording.decisions.push_back(own);
  const RecordedLoad load = load_of_scope(recording, 3);
  EXPECT_EQ(load.left_out, 3U);
  const LoadResult result = result_of(load.decisions, load.from, load.to);
  EXPECT_EQ(result.refused, 1U);
  EXPECT_EQ(result.by_reason[index_of(Reason::kOverload)][index_of(Priority::kNormal)], 1U);
}

TEST(RecordedLoad, ATraceHasClassCostActorPeerAndHedge) {
  policy::Recording recording;
  for (int i = 0; i < 20; ++i) recording.decisions.push_back(served(i * 10, 5));
  RecordedDecision one = served(50, 5);
  one.actor = 77;
  one.peer = 9;
  one.hedge = true;
  one.cost = 4;
  one.bytes = 100;
  one.priority = Priority::kHigh;
  recording.decisions.push_back(one);
  one.actor = 78;
  recording.decisions.push_back(one);
  const LoadSpec trace = trace_of(load_of_scope(recording, 3));
  EXPECT_EQ(trace.actors, 2U);
  EXPECT_EQ(trace.peers, 1U);
  const TraceRow& row = trace.trace.back();
  EXPECT_EQ(row.actor, 2U);
  EXPECT_EQ(row.peer, 1U);
  EXPECT_TRUE(row.hedge);
  EXPECT_EQ(row.cost, 4U);
  EXPECT_EQ(row.bytes, 100U);
  EXPECT_EQ(row.priority, Priority::kHigh);
}

TEST(RecordedLoad, AResultCountsEachRequestOnce) {
  std::vector<RecordedDecision> decisions;
  for (int i = 1; i <= 100; ++i) decisions.push_back(served(i, i));
  decisions.push_back(refused(50, Reason::kOverload));
  RecordedDecision failed = served(60, 5000);
  failed.end = DecisionEnd::kError;
  decisions.push_back(failed);
  decisions.push_back(served(1000, 1));
  const LoadResult result = result_of(decisions, Duration(0), seconds(1));
  EXPECT_EQ(result.asked, 102U);
  EXPECT_EQ(result.admitted, 101U);
  EXPECT_EQ(result.ok, 100U);
  EXPECT_EQ(result.refused, 1U);
  EXPECT_DOUBLE_EQ(result.goodput(), 100);
  EXPECT_EQ(result.p50, Duration(milliseconds(50)));
  EXPECT_EQ(result.p99, Duration(milliseconds(99)));
}

}  // namespace
}  // namespace weir::inline v0::sim
