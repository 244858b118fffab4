#include "memory/arena_pool.h"

#include <atomic>
#include <latch>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"
#include "weir/experimental/io/loop_threads.h"

namespace weir::inline v0::inline server {
namespace {

using std::chrono::seconds;

ArenaPool::Shape shape(std::uint32_t count, std::uint32_t pending, std::uint32_t loops = 1) {
  return {.blocks =
              {.count = count, .bytes_each = 4096, .reserved = 0, .loops = loops, .cached_max = 0},
          .pending_max = pending,
          .high_watermark = 1.0};
}

struct Waiting final : ArenaWaiter::Owner {
  explicit Waiting(std::uint32_t loop = 0) {
    waiter.owner = this;
    waiter.loop = loop;
  }
  void on_arena_ready(std::byte* arena) override {
    ++told;
    got = arena;
  }
  ArenaWaiter waiter;
  std::byte* got = nullptr;
  int told = 0;
};

struct Posted {
  void run() { ++count; }
  int count = 0;
};

struct ArenaPoolTest : testing::Test {
  io::Loop loop;
  Posted posted;
  io::Task answers{io::Callback<>::to<&Posted::run>(posted)};
  TimePoint now = time_from_ns(1'000'000'000);
};

TEST_F(ArenaPoolTest, FreedArenaGoesToTheOldestWaiter) {
  ArenaPool pool(shape(1, 2));
  pool.attach(0, loop, answers);
  std::byte* only = pool.acquire(0, io::Access::kOrdinary);
  Waiting first;
  Waiting second;
  EXPECT_TRUE(pool.enqueue(first.waiter, now));
  EXPECT_TRUE(pool.enqueue(second.waiter, now));
  Waiting third;
  EXPECT_FALSE(pool.enqueue(third.waiter, now)) << "the queue is full";
  EXPECT_EQ(pool.pending_stats().used, 2U);
  EXPECT_EQ(pool.pending_stats().exhausted, 1U);
  pool.release(0, only);
  loop.run_once();
  EXPECT_EQ(posted.count, 1);
  pool.answer(0);
  EXPECT_EQ(first.got, only);
  EXPECT_EQ(second.told, 0);
  EXPECT_EQ(pool.stats().used, 1U);
  pool.release(0, first.got);
  pool.answer(0);
  EXPECT_EQ(second.got, only);
  pool.release(0, second.got);
  EXPECT_EQ(pool.pending_stats().used, 0U);
}

TEST_F(ArenaPoolTest, WaiterIsToldWhenItHasWaitedTooLong) {
  ArenaPool pool(shape(1, 4));
  pool.attach(0, loop, answers);
  std::byte* only = pool.acquire(0, io::Access::kOrdinary);
  Waiting old;
  Waiting young;
  EXPECT_TRUE(pool.enqueue(old.waiter, now));
  EXPECT_TRUE(pool.enqueue(young.waiter, now + seconds(5)));
  EXPECT_EQ(pool.oldest_wait(now + seconds(9)), seconds(9));
  EXPECT_TRUE(pool.drop_oldest());
  pool.answer(0);
  EXPECT_EQ(old.told, 1);
  EXPECT_EQ(old.got, nullptr);
  EXPECT_EQ(young.told, 0);
  pool.cancel(young.waiter);
  pool.cancel(young.waiter);
  pool.release(0, only);
  EXPECT_EQ(pool.stats().used, 0U);
}

TEST_F(ArenaPoolTest, CancelledAfterBeingServedPassesTheArenaOn) {
  ArenaPool pool(shape(1, 4));
  pool.attach(0, loop, answers);
  std::byte* only = pool.acquire(0, io::Access::kOrdinary);
  Waiting leaver;
  Waiting next;
  EXPECT_TRUE(pool.enqueue(leaver.waiter, now));
  EXPECT_TRUE(pool.enqueue(next.waiter, now));
  pool.release(0, only);       // served, not answered yet
  pool.cancel(leaver.waiter);  // its client disconnected
  pool.answer(0);
  EXPECT_EQ(leaver.told, 0);
  EXPECT_EQ(next.got, only);
  pool.release(0, only);
  EXPECT_EQ(pool.stats().used, 0U);
}

TEST_F(ArenaPoolTest, QueueIsServedOnlyBelowTheWatermark) {
  ArenaPool::Shape ten = shape(10, 4);
  ten.high_watermark = 0.85;
  ArenaPool pool(ten);
  pool.attach(0, loop, answers);
  std::vector<std::byte*> held;
  for (int i = 0; i < 10; ++i) held.push_back(pool.acquire(0, io::Access::kOrdinary));
  Waiting waiting;
  EXPECT_TRUE(pool.enqueue(waiting.waiter, now));
  pool.release(0, held[9]);
  pool.answer(0);
  EXPECT_EQ(waiting.told, 0) << "0.9 of the arenas are in use";
  pool.release(0, held[8]);
  pool.answer(0);
  EXPECT_NE(waiting.got, nullptr) << "0.8 are";
  pool.release(0, waiting.got);
  for (std::size_t i = 0; i < 8; ++i) pool.release(0, held[i]);
}

/// Streams of several loops that take, wait, cancel and release at random.
struct Storm {
  void run() { pool->answer(loop); }
  ArenaPool* pool = nullptr;
  std::uint32_t loop = 0;
  TimePoint now{};
  io::Task task{io::Callback<>::to<&Storm::run>(*this)};
};

TEST(ArenaPoolLoops, NoArenaIsLostBetweenLoops) {
  constexpr std::uint32_t kLoops = 3;
  ArenaPool pool(shape(4, 16, kLoops));
  io::LoopThreads loops({.count = kLoops, .pin = false, .name = "arena"});
  std::array<Storm, kLoops> storms;
  for (std::uint32_t i = 0; i < kLoops; ++i) {
    storms[i].pool = &pool;
    storms[i].loop = i;
    pool.attach(i, loops.at(i), storms[i].task);
  }
  loops.start();
  std::latch done(kLoops);
  for (std::uint32_t i = 0; i < kLoops; ++i) {
    loops.at(i).post([&, i] {
      Rng rng(i + 1);
      Waiting waiting(i);
      for (int round = 0; round < 5000; ++round) {
        std::byte* arena = pool.acquire(i, io::Access::kOrdinary);
        if (arena == nullptr && !waiting.waiter.hook.linked() && waiting.got == nullptr) {
          static_cast<void>(pool.enqueue(waiting.waiter, TimePoint{}));
        }
        if (arena != nullptr) {
          *arena = static_cast<std::byte>(i);  // two owners would be a race
          pool.release(i, arena);
        }
        if (rng.chance(0.3)) pool.answer(i);
        if (rng.chance(0.1)) pool.cancel(waiting.waiter);
        if (waiting.got != nullptr) pool.release(i, std::exchange(waiting.got, nullptr));
      }
      pool.cancel(waiting.waiter);
      pool.answer(i);
      if (waiting.got != nullptr) pool.release(i, waiting.got);
      done.count_down();
    });
  }
  done.wait();
  loops.stop();
  EXPECT_EQ(pool.stats().used, 0U);
  EXPECT_EQ(pool.pending_stats().used, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
