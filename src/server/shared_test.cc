#include "shared.h"

#include <memory>

#include <gtest/gtest.h>

#include "server/server_testing.h"
#include "shard.h"

namespace weir::inline v0::inline server {
namespace {

using std::chrono::milliseconds;
using testkit::ScriptedHandler;

struct PendingStream final : ArenaWaiter::Owner {
  PendingStream() { waiter.owner = this; }
  void on_arena_ready(std::byte*) override {}
  ArenaWaiter waiter;
};

TEST(CollectPressure, GathersWhatPoolsAndLoopsHold) {
  ServerConfig config = testkit::small_config();
  config.max_connections = 20;
  config.tcp_write_buffer_pool_size = 10;
  config.arena_pool_size = 4;
  config.pending_stream_pool_size = 8;
  ServerShared shared(config, 2);
  io::Loop loop;
  LoopShard first(shared, loop, 0, std::make_unique<ScriptedHandler>());
  LoopShard second(shared, loop, 1, std::make_unique<ScriptedHandler>());
  shared.shards = {&first, &second};
  const TimePoint start = time_from_ns(1'000'000'000);

  const PressureState nothing = collect_pressure(shared, start);
  EXPECT_EQ(nothing.tcp_write_slab_usage, 0);
  EXPECT_EQ(nothing.active_connections, 0U);
  EXPECT_EQ(nothing.oldest_backpressure_age, Duration::zero());
  EXPECT_EQ(nothing.oldest_pending_stream_age, Duration::zero());

  WriteBuffer* const buffer = shared.writes.acquire(0, io::Access::kOrdinary);
  std::byte* arenas[3];
  for (std::byte*& arena : arenas) arena = shared.arenas.acquire(0, io::Access::kOrdinary);
  std::byte* const last_arena = shared.arenas.acquire(1, io::Access::kOrdinary);
  PendingStream older;
  PendingStream younger;
  ASSERT_TRUE(shared.arenas.enqueue(older.waiter, start));
  ASSERT_TRUE(shared.arenas.enqueue(younger.waiter, start + milliseconds(5)));
  const auto opened = shared.connections.acquire(second, {});
  ASSERT_TRUE(opened.has_value());
  first.counters().idle.set(2);
  second.counters().idle.set(3);
  first.counters().backpressured.set(1);
  second.counters().backpressured.set(4);
  first.counters().oldest_blocked_ns.set(
      static_cast<std::uint64_t>(to_ns(start + milliseconds(7))));
  second.counters().oldest_blocked_ns.set(
      static_cast<std::uint64_t>(to_ns(start + milliseconds(3))));

  const PressureState state = collect_pressure(shared, start + milliseconds(10));
  EXPECT_DOUBLE_EQ(state.tcp_write_slab_usage, 0.1);
  EXPECT_DOUBLE_EQ(state.arena_slab_usage, 1.0);
  EXPECT_DOUBLE_EQ(state.pending_stream_usage, 0.25);
  EXPECT_DOUBLE_EQ(state.handle_slab_usage, 0.05);
  EXPECT_EQ(state.active_connections, 1U);
  EXPECT_EQ(state.idle_connections, 5U);
  EXPECT_EQ(state.backpressure_queue_len, 5U);
  EXPECT_EQ(state.pending_stream_count, 2U);
  EXPECT_EQ(state.oldest_backpressure_age, milliseconds(7)) << "of all loops";
  EXPECT_EQ(state.oldest_pending_stream_age, milliseconds(10));

  shared.arenas.cancel(older.waiter);
  shared.arenas.cancel(younger.waiter);
  for (std::byte* arena : arenas) shared.arenas.release(0, arena);
  shared.arenas.release(1, last_arena);
  shared.writes.release(0, buffer);
  shared.connections.release(**opened);
}

TEST(CollectPressure, PoolsThatAServerDoesNotHaveAreEmptyNotFull) {
  ServerConfig config = testkit::small_config();
  config.arena_pool_size = 0;
  config.pending_stream_pool_size = 0;
  const ServerShared shared(config, 1);
  const PressureState state = collect_pressure(shared, TimePoint{});
  EXPECT_EQ(state.arena_slab_usage, 0);
  EXPECT_EQ(state.pending_stream_usage, 0);
}

}  // namespace
}  // namespace weir::inline v0::inline server
