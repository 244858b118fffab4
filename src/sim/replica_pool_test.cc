#include "replica_pool.h"

#include <vector>

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

using policy::EndpointState;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct ReplicaPoolTest : ::testing::Test {
  ReplicasSpec spec;
  TimePoint now = TimePoint{} + seconds(1);
  std::vector<bool> alive = {true, true, true};

  ReplicaPoolTest() { spec.each.resize(3); }

  void tick(ReplicaPool& pool, Duration time) {
    for (const TimePoint end = now + time; now < end;) {
      now += ReplicaPool::kTickEvery;
      pool.tick(now, [this](std::uint32_t i) { return alive[i]; });
    }
  }
  void exchange(ReplicaPool& pool, std::uint32_t replica, Duration latency, ReplicaEnd end) const {
    pool.sent(replica, now);
    pool.ended(replica, end, now, now + latency);
  }
  int chosen(ReplicaPool& pool, std::uint32_t replica) const {
    int times = 0;
    for (int i = 0; i < 300; ++i) times += pool.choose({}, now).index == replica ? 1 : 0;
    return times;
  }
};

TEST_F(ReplicaPoolTest, ASilentReplicaIsSuspectedWhileOthersAreHeard) {
  ReplicaPool pool(spec, Rng(1));
  alive[1] = false;
  pool.sent(1, now);
  for (int i = 0; i < 10; ++i) {
    tick(pool, milliseconds(20));
    exchange(pool, 0, milliseconds(5), ReplicaEnd::kOk);
  }
  EXPECT_EQ(pool.state(1), EndpointState::kSuspect);
  EXPECT_EQ(chosen(pool, 1), 0);
  alive[1] = true;
  tick(pool, milliseconds(20));
  EXPECT_EQ(pool.state(1), EndpointState::kAvailable);
}

TEST_F(ReplicaPoolTest, WithoutOthersNobodyIsSuspected) {
  ReplicaPool pool(spec, Rng(1));
  alive = {false, false, false};
  for (std::uint32_t i = 0; i < 3; ++i) pool.sent(i, now);
  tick(pool, seconds(5));
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(pool.state(i), EndpointState::kAvailable);
}

TEST_F(ReplicaPoolTest, AHangTeachesNothing) {
  ReplicaPool pool(spec, Rng(1));
  for (int i = 0; i < 30; ++i) {
    for (std::uint32_t r = 0; r < 3; ++r) exchange(pool, r, milliseconds(5), ReplicaEnd::kOk);
    tick(pool, milliseconds(20));
  }
  const TimePoint sent_at = now;
  pool.sent(1, now);
  alive[1] = false;
  for (int i = 0; i < 100; ++i) {
    tick(pool, milliseconds(20));
    exchange(pool, 0, milliseconds(5), ReplicaEnd::kOk);
    exchange(pool, 2, milliseconds(5), ReplicaEnd::kOk);
  }
  EXPECT_EQ(pool.state(1), EndpointState::kHung);
  alive[1] = true;
  tick(pool, milliseconds(20));
  pool.ended(1, ReplicaEnd::kOk, sent_at, now);
  tick(pool, seconds(11));  // the ramp is over
  EXPECT_GT(chosen(pool, 1), 50);
}

TEST_F(ReplicaPoolTest, ASlowReplicaThatAnswersProbesIsLearned) {
  ReplicaPool pool(spec, Rng(1));
  for (int i = 0; i < 30; ++i) {
    for (std::uint32_t r = 0; r < 3; ++r) exchange(pool, r, milliseconds(5), ReplicaEnd::kOk);
    tick(pool, milliseconds(20));
  }
  const TimePoint sent_at = now;
  pool.sent(1, now);
  for (int i = 0; i < 40; ++i) {
    tick(pool, milliseconds(20));
    exchange(pool, 0, milliseconds(5), ReplicaEnd::kOk);
    exchange(pool, 2, milliseconds(5), ReplicaEnd::kOk);
  }
  EXPECT_GT(pool.counts().suspicions, 0U);
  while (pool.state(1) != EndpointState::kAvailable) tick(pool, milliseconds(20));
  pool.ended(1, ReplicaEnd::kCancelled, sent_at, now);
  EXPECT_EQ(chosen(pool, 1), 0);
}

TEST_F(ReplicaPoolTest, ThreeBadAnswersInARowEject) {
  ReplicaPool pool(spec, Rng(1));
  for (int i = 0; i < 3; ++i) exchange(pool, 2, milliseconds(1), ReplicaEnd::kBadAnswer);
  EXPECT_EQ(pool.state(2), EndpointState::kEjected);
  EXPECT_EQ(pool.counts().ejections, 1U);
  EXPECT_EQ(chosen(pool, 2), 0);
  const std::uint32_t tried[] = {0, 1};
  EXPECT_FALSE(pool.other_open(tried));
}

TEST_F(ReplicaPoolTest, OneReplicaCannotSpendTheBudgetOfTheOthers) {
  spec.budget = {.deposit_millitokens = 0, .cap_millitokens = 3000};
  ReplicaPool pool(spec, Rng(1));
  int taken = 0;
  while (pool.take_budget(0)) ++taken;
  EXPECT_EQ(taken, 3);
  EXPECT_FALSE(pool.take_budget(1));  // the shared one is empty too
  pool.deposit();
  EXPECT_FALSE(pool.take_budget(1));
}

TEST_F(ReplicaPoolTest, NobodyHoldsMoreThanItsShareOfTheLimit) {
  ReplicaPool pool(spec, Rng(1));
  pool.set_limit(20);
  std::vector<int> held(3);
  for (int i = 0; i < 30; ++i) {
    const policy::Choice choice = pool.choose({}, now);
    ASSERT_TRUE(choice.found());
    pool.sent(choice.index, now);
    EXPECT_LE(++held[choice.index], 10);  // 1.5 × 20 ÷ 3
  }
  EXPECT_EQ(pool.choose({}, now).reason, policy::ChoiceReason::kAllFull);
}

}  // namespace
}  // namespace weir::sim
