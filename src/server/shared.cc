#include "shared.h"

#include <algorithm>
#include <limits>

#include "weir/experimental/io/entropy.h"

#include "h2/h2_session.h"
#include "shard.h"
#include "tls/tls_shared.h"

namespace weir::inline v0::inline server {
constexpr std::uint32_t kCachedWriteBuffers = 2;  // per loop

ServerShared::ServerShared(const ServerConfig& given, std::uint32_t loops)
    : config(given),
      loop_count(loops),
      write_quota(given.write_quota()),
      regions({.block_count = given.max_connections, .block_bytes = given.conn_decrypted_buf_size}),
      stages(given.uses_stages()
                 ? std::make_unique<RegionPool>(BlockPool::Shape{
                       .block_count = given.max_connections, .block_bytes = kStageBytes})
                 : nullptr),
      writes({.count = given.tcp_write_buffer_pool_size,
              .bytes_each = given.tcp_write_buffer_size,
              .reserved = given.reserved_write_buffers,
              .loops = loops,
              .cached_max = kCachedWriteBuffers}),
      arenas({.blocks = {.count = given.arena_pool_size,
                         .bytes_each = given.arena_size,
                         .reserved = given.reserved_arenas,
                         .loops = loops,
                         .cached_max = 0},
              .pending_max = given.pending_stream_pool_size,
              .high_watermark = given.high_watermark}),
      connections({.count = given.max_connections,
                   .reserved = given.reserved_connections,
                   .per_source_max = given.connections_per_source_max}),
      h2_kit(given.http2),
      lease_shape{.body_bytes = given.body_lease_size,
                  .trailer_bytes = given.http2.trailer_list_bytes_max},
      h2_sessions({.count = given.http2_sessions(),
                   .bytes_each = H2Session::block_bytes(given.http2),
                   .reserved = given.reserved_sessions(),
                   .loops = loops,
                   .cached_max = 0}),
      body_leases({.count = given.http2_enabled ? given.body_lease_pool_size : 0,
                   .bytes_each = lease_shape.block_bytes(),
                   .reserved = given.reserved_body_leases(),
                   .loops = loops,
                   .cached_max = 0}),
      streams({.count = given.streams_max, .reserved = given.reserved_streams}),
      tunnels({.count = given.tunnels_max + given.reserved_streams,
               .reserved = given.reserved_streams}),
      h2_tunnels({.count = given.http2_tunnels(), .reserved = given.reserved_body_leases()}),
      h2_streams(streams, given.http2_enabled ? given.streams_max : 0) {}

ServerShared::~ServerShared() = default;

ConnectionTable::ConnectionTable(const Shape& shape)
    : reserved_(shape.reserved), slab_(shape.count) {
  if (shape.per_source_max == 0) return;
  sources_.emplace(SourceTable::Shape{.connections = shape.count,
                                      .per_source_max = shape.per_source_max,
                                      .secret = {io::random_seed(), io::random_seed()}});
}

Result<Connection*, RefuseReason> ConnectionTable::acquire(LoopShard& shard,
                                                           const Connection::Arrival& arrival) {
  const std::lock_guard lock(mutex_);
  const PoolStats& stats = slab_.stats();
  if (!arrival.critical && stats.capacity - stats.used <= reserved_) {
    ++refused_for_reserve_;
    return unexpected(RefuseReason::kConnections);
  }
  const bool counted = sources_.has_value() && !arrival.critical && !arrival.proxied;
  if (counted && !sources_->enter(arrival.peer)) return unexpected(RefuseReason::kSource);
  Connection* connection = slab_.get(slab_.acquire(shard, arrival));
  if (connection != nullptr) {
    connection->source_counted = counted;
    return connection;
  }
  if (counted) sources_->leave(arrival.peer);
  return unexpected(RefuseReason::kConnections);
}

bool ConnectionTable::announce(Connection& connection, const io::Address& client) {
  const std::lock_guard lock(mutex_);
  if (!sources_.has_value()) return true;
  connection.source_counted = sources_->enter(client);
  return connection.source_counted;
}

void ConnectionTable::release(Connection& connection) {
  const std::lock_guard lock(mutex_);
  if (connection.source_counted) sources_->leave(connection.peer());
  slab_.release(slab_.handle_of(&connection));
  if (waiting_task_ == nullptr) return;
  waiting_loop_->post(*waiting_task_);
  waiting_task_ = nullptr;
}

bool ConnectionTable::has_room(bool critical) const {
  const std::lock_guard lock(mutex_);
  const PoolStats& stats = slab_.stats();
  return stats.capacity - stats.used > (critical ? 0 : reserved_);
}

void ConnectionTable::want(io::Loop& on, io::Task& freed) {
  const std::lock_guard lock(mutex_);
  const PoolStats& stats = slab_.stats();
  if (stats.capacity - stats.used > reserved_) return on.post(freed);  // one is free now
  waiting_loop_ = &on;
  waiting_task_ = &freed;
}

void ConnectionTable::unwant() {
  const std::lock_guard lock(mutex_);
  waiting_task_ = nullptr;
}

PoolStats ConnectionTable::stats() const {
  const std::lock_guard lock(mutex_);
  PoolStats stats = slab_.stats();
  stats.exhausted += refused_for_reserve_;
  return stats;
}

PressureState collect_pressure(const ServerShared& shared, TimePoint now) noexcept {
  const PoolStats connections = shared.connections.stats();
  const PoolStats pending = shared.arenas.pending_stats();
  PressureState state;
  state.tcp_write_slab_usage = usage(shared.writes.blocks().stats());
  // Without arenas or without a queue, usage is 0.
  state.arena_slab_usage = shared.config.arena_pool_size == 0 ? 0 : usage(shared.arenas.stats());
  state.pending_stream_usage = pending.capacity == 0 ? 0 : usage(pending);
  state.handle_slab_usage = usage(connections);
  state.active_connections = static_cast<std::uint32_t>(connections.used);
  state.pending_stream_count = static_cast<std::uint32_t>(pending.used);
  state.oldest_pending_stream_age = shared.arenas.oldest_wait(now);
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const LoopShard* shard : shared.shards) {
    const LoopCounters& counters = shard->counters();
    state.idle_connections += static_cast<std::uint32_t>(counters.idle.get());
    state.backpressure_queue_len += static_cast<std::uint32_t>(counters.backpressured.get());
    const std::uint64_t since = counters.oldest_blocked_ns.get();
    if (since != 0) oldest = std::min(oldest, since);
  }
  if (oldest != std::numeric_limits<std::uint64_t>::max()) {
    state.oldest_backpressure_age = now - time_from_ns(static_cast<std::int64_t>(oldest));
  }
  return state;
}

PressureDecision judge_pressure(ServerShared& shared, TimePoint now) noexcept {
  const PressureDecision decision = evaluate_pressure(collect_pressure(shared, now), shared.config);
  shared.level.store(decision.level, std::memory_order_relaxed);
  return decision;
}

}  // namespace weir::inline v0::inline server
