#include "attempt.h"

#include <vector>

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

void ignore(Waiter&) noexcept {}

TEST(AttemptPool, PlacesDoNotMoveAndAreReusedLastFirst) {
  AttemptPool pool(&ignore, nullptr);
  std::vector<Attempt*> taken;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Attempt& attempt = pool.take();
    EXPECT_EQ(attempt.index, i);
    attempt.state = AttemptState::kQueued;
    taken.push_back(&attempt);
  }
  for (std::uint32_t i = 0; i < 5000; ++i) EXPECT_EQ(&pool[i], taken[i]);
  const std::uint32_t life = taken[17]->life;
  pool.give_back(*taken[17]);
  Attempt& again = pool.take();
  EXPECT_EQ(&again, taken[17]);
  EXPECT_NE(again.life, life);  // timeouts of the old use are stale
  for (Attempt* attempt : taken) attempt->state = AttemptState::kFree;
}

TEST(AttemptList, RemovesFromEverywhere) {
  AttemptPool pool(&ignore, nullptr);
  AttemptList list;
  for (int i = 0; i < 5; ++i) list.push_back(pool, pool.take());
  list.remove(pool, pool[2]);
  list.remove(pool, pool[0]);
  list.remove(pool, pool[4]);
  EXPECT_EQ(list.size, 2U);
  EXPECT_EQ(list.first, 1U);
  EXPECT_EQ(list.last, 3U);
  EXPECT_EQ(pool[1].next, 3U);
  list.remove(pool, pool[1]);
  list.remove(pool, pool[3]);
  EXPECT_EQ(list.first, kNoAttempt);
  EXPECT_EQ(list.size, 0U);
}

}  // namespace
}  // namespace weir::sim
