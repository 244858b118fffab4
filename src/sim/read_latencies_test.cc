#include "read_latencies.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

using std::chrono::milliseconds;

struct ReadLatenciesTest : ::testing::Test {
  TimePoint now = TimePoint{} + std::chrono::seconds(1);

  void answer(ReadLatencies& reads, std::uint32_t replica, Duration latency,
              int times = 200) const {
    for (int i = 0; i < times; ++i) reads.record(replica, {.latency = latency}, now);
  }
};

TEST_F(ReadLatenciesTest, TheDelayIsTheDefaultUntilSomethingIsKnown) {
  ReadLatencies reads({}, 2);
  reads.tick(now);
  EXPECT_EQ(reads.delay(0, now), policy::HedgeConfig{}.default_delay);
  EXPECT_EQ(reads.median(0), Duration(0));
}

TEST_F(ReadLatenciesTest, ASlowReplicaIsHedgedAsLateAsTheOthers) {
  ReadLatencies reads({}, 3);
  for (std::uint32_t i = 0; i < 2; ++i) answer(reads, i, milliseconds(4));
  answer(reads, 2, milliseconds(40));
  reads.tick(now);
  EXPECT_LT(reads.delay(2, now), milliseconds(5));
  EXPECT_GT(reads.median(2), milliseconds(35));
  EXPECT_FALSE(reads.cohort_slow());
}

TEST_F(ReadLatenciesTest, TheCohortIsJudgedFromTimeToTime) {
  ReadLatencies reads({}, 2);
  reads.tick(now);
  for (std::uint32_t i = 0; i < 2; ++i) answer(reads, i, milliseconds(80));
  reads.tick(now + ReadLatencies::kJudgeEvery - Duration(1));
  EXPECT_FALSE(reads.cohort_slow());
  reads.tick(now + ReadLatencies::kJudgeEvery);
  EXPECT_TRUE(reads.cohort_slow());
}

}  // namespace
}  // namespace weir::sim
