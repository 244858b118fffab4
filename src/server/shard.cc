#include "shard.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/entropy.h"
#include "weir/experimental/io/fd.h"

#include "tls/tls_shared.h"

namespace weir::inline v0::inline server {
constexpr std::uint32_t kSweepArenas = 64;
constexpr std::size_t kStalledPerTick = 32;  // closed by one loop
constexpr Duration kDateValid = std::chrono::milliseconds(500);

LoopShard::LoopShard(ServerShared& shared, io::Loop& loop, std::uint32_t index,
                     std::unique_ptr<Handler> handler)
    : shared_(shared),
      loop_(loop),
      index_(index),
      handler_(std::move(handler)),
      regions_(shared.regions),
      headers_(std::max(shared.config.header_count_max, shared.config.trailer_count_max)),
      writers_(shared, loop, index, counters_),
      arrivals_(shared.config.max_connections),
      arrivals_task_(io::Callback<>::to<&LoopShard::take_arrivals>(*this)),
      arena_task_(io::Callback<>::to<&LoopShard::answer_arenas>(*this)),
      judge_task_(io::Callback<>::to<&LoopShard::judge>(*this)),
      room_task_(io::Callback<>::to<&LoopShard::give_room>(*this)),
      blocked_task_(io::Callback<>::to<&LoopShard::end_blocked_for_others>(*this)),
      handshake_task_(io::Callback<>::to<&LoopShard::tell_handshakes>(*this)),
      tick_(io::Timer::Fired::to<&LoopShard::on_tick>(*this)),
      source_salt_(io::random_seed()) {
  if (shared.stages) stages_ = std::make_unique<RegionStack>(*shared.stages);
}

LoopShard::~LoopShard() {
  WEIR_ASSERT(all_.empty());
}

void LoopShard::start() {
  shared_.arenas.attach(index_, loop_, arena_task_);
  writers_.start();
  if (shared_.tls) shared_.tls->slots.attach(index_, loop_, handshake_task_);
  const TimePoint now = loop_.now();
  next_sweep_ = now + config().sweep_interval;
  loop_.arm(tick_, now + config().tick);
}

void LoopShard::stop(io::Callback<> done) {
  stopping_ = true;
  stopped_ = done;
  take_arrivals();
  for (Connection& connection : all_) connection.close_now(CloseReason::kShutdown);
  if (all_.empty()) finish_stop();
}

void LoopShard::finish_stop() {
  loop_.cancel(tick_);
  std::exchange(stopped_, {})();
}

void LoopShard::hand_over(io::Fd fd, Connection& connection) {
  load_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(arrivals_mutex_);
    const bool kept = arrivals_.push_back({fd.release(), &connection});
    WEIR_ASSERT(kept);  // there is room for every connection
  }
  if (loop_.in_loop_thread()) {
    take_arrivals();
  } else {
    loop_.post(arrivals_task_);
  }
}

void LoopShard::take_arrivals() {
  while (true) {
    Arrival next;
    {
      const std::lock_guard lock(arrivals_mutex_);
      if (arrivals_.empty()) return;
      next = arrivals_.pop_front();
    }
    io::Fd fd(next.fd);
    if (!stopping_ && next.connection->open(std::move(fd))) continue;
    load_.fetch_sub(1, std::memory_order_relaxed);
    shared_.connections.release(*next.connection);
  }
}

void LoopShard::on_opened(Connection& connection) {
  all_.push_back(connection);
  regions_.adopt();
  if (connection.begins_in_stage()) stages_->adopt();
  ++counters_.accepted;
  ++counters_.connections;
}

void LoopShard::on_closed(Connection& connection) {
  all_.remove(connection);
  regions_.abandon();
  if (connection.begins_in_stage()) stages_->abandon();
  --counters_.connections;
  load_.fetch_sub(1, std::memory_order_relaxed);
  shared_.connections.release(connection);
  if (stopping_ && all_.empty()) finish_stop();
}

std::string_view LoopShard::date(TimePoint now) {
  if (now >= date_valid_until_) {
    write_http_date(io::unix_seconds(), std::span<char, kHttpDateBytes>(date_));
    date_valid_until_ = now + kDateValid;
  }
  return {date_.data(), date_.size()};
}

ReadRegion LoopShard::lease_region() {
  const ReadRegion region = regions_.lease();
  counters_.regions_leased.set(regions_.leased());
  if (regions_.leased() > counters_.regions_leased_peak.get()) {
    counters_.regions_leased_peak.set(regions_.leased());
  }
  return region;
}

void LoopShard::release_region(const ReadRegion& region) {
  regions_.release(region);
  counters_.regions_leased.set(regions_.leased());
}

void LoopShard::set_idle(Connection& connection, bool idle, bool moved) {
  const bool was = connection.idle_hook.linked();
  if (was == idle && !(idle && moved)) return;
  if (was) (connection.idle_as_newcomer ? silent_ : idle_).remove(connection);
  if (idle) {
    connection.idle_as_newcomer = connection.unused();
    (connection.idle_as_newcomer ? silent_ : idle_).push_back(connection);
  }
  counters_.idle.set(idle_count());
}

void LoopShard::set_incomplete(Connection& connection, bool incomplete) {
  if (connection.incomplete_hook.linked() == incomplete) return;
  incomplete ? incomplete_.push_back(connection) : incomplete_.remove(connection);
}

/// Connections that exceed config().stall_grace become idle.
void LoopShard::check_incomplete(TimePoint now) {
  while (Connection* oldest = incomplete_.front()) {
    if (now - oldest->incomplete_since() < config().stall_grace) return;
    oldest->settle_lists(now);
    WEIR_ASSERT(!oldest->incomplete_hook.linked());
  }
}

void LoopShard::set_blocked(Connection& connection, bool blocked, bool moved) {
  const bool was = connection.blocked_hook.linked();
  if (!was && !blocked) return;
  if (was && (!blocked || moved)) blocked_connections_.remove(connection);
  if (blocked && (!was || moved))
    blocked_connections_.push_back(connection);  // longest blocked first
  if (was != blocked) {
    const std::uint32_t before =
        blocked ? shared_.backpressured.fetch_add(1) : shared_.backpressured.fetch_sub(1);
    if (blocked && before >= config().backpressure_list_max) {
      ++counters_.backpressure_full;
      on_exhausted();
    }
  }
  counters_.backpressured.set(blocked_connections_.size());
  if (blocked_connections_.size() > counters_.backpressured_peak.get()) {
    counters_.backpressured_peak.set(blocked_connections_.size());
  }
  const Connection* oldest = oldest_stuck();
  counters_.oldest_blocked_ns.set(
      oldest == nullptr ? 0 : static_cast<std::uint64_t>(to_ns(oldest->blocked_since())));
}

/// Critical connections are not dropped; their own deadlines end them.
Connection* LoopShard::oldest_stuck() noexcept {
  for (Connection& connection : blocked_connections_) {
    if (!connection.critical()) return &connection;
  }
  return nullptr;
}

void LoopShard::tell_handshakes() {
  shared_.tls->slots.tell(index_);
}

void LoopShard::give_room() {
  close_idle(1, loop_.now() - kJustAnswered, CloseReason::kIdlePressure);
}

LoopShard::ArenaGrant LoopShard::acquire_arena(ArenaWaiter& waiter, io::Access access,
                                               bool may_wait) {
  const TimePoint now = loop_.now();
  const PressureDecision decision = judge_pressure(shared_, now);
  ArenaGrant grant;
  if (access == io::Access::kCritical || decision.accept_stream) {
    grant.memory = shared_.arenas.acquire(index_, access);
    if (grant.memory != nullptr) return grant;
  }
  const bool queue_open = decision.accept_stream || decision.use_pending_queue;
  grant.pending = may_wait && queue_open && shared_.arenas.enqueue(waiter, now);
  if (!grant.pending) {
    counters_.count(RefuseReason::kArena);
    if (access == io::Access::kCritical) ++counters_.critical_shed;
  }
  on_exhausted();
  return grant;
}

/// Of those quiet since `quiet_since`: first those without any request, then the longest idle.
std::uint32_t LoopShard::close_idle(std::uint32_t count, TimePoint quiet_since,
                                    CloseReason reason) {
  std::uint32_t closed = 0;
  for (; closed < count; ++closed) {
    Connection* next = silent_.front();
    if (next == nullptr || next->idle_since() > quiet_since) next = idle_.front();
    if (next == nullptr || next->idle_since() > quiet_since) break;
    next->close_now(reason);
  }
  return closed;
}

void LoopShard::on_tick(TimePoint now) {
  check_incomplete(now);
  if (shared_.tls) shared_.tls->slots.reclaim(now);
  keep_places_free();
  judge();
  if (!idle_closed_ && closes_idle()) {
    idle_closed_ = true;
    drain();
  }
  if (now >= next_sweep_) {
    next_sweep_ = now + config().sweep_interval;
    static_cast<void>(regions_.sweep());
    if (index_ == 0) {
      static_cast<void>(shared_.regions.trim(config().max_connections));
      static_cast<void>(shared_.arenas.trim(kSweepArenas));
      static_cast<void>(shared_.h2_sessions.trim(config().max_connections));
      static_cast<void>(shared_.body_leases.trim(kSweepArenas));
    }
  }
  if (!stopping_) loop_.arm(tick_, now + config().tick);
}

void LoopShard::judge() {
  const TimePoint now = loop_.now();
  obey(judge_pressure(shared_, now), now);
}

/// Carries out the decision, and evaluates pressure again after each drop; but at CRITICAL only one
/// blocked connection is closed per evaluation, because others may lower the level meanwhile.
void LoopShard::obey(PressureDecision decision, TimePoint now) {
  if (decision.connections_to_timeout > 0) close_connections(decision, now);
  while (decision.drop_oldest_pending_stream && shared_.arenas.drop_oldest()) {
    decision = judge_pressure(shared_, now);
  }
  while (decision.drop_oldest_backpressure && drop_oldest_stuck() &&
         decision.level != PressureLevel::kCritical) {
    decision = judge_pressure(shared_, now);
  }
}

/// Each loop closes its share, rounded up: first idle connections, then stalled ones.
void LoopShard::close_connections(const PressureDecision& decision, TimePoint now) {
  const std::uint64_t wanted = decision.connections_to_timeout;
  std::uint64_t idle = 0;
  std::uint64_t all = 0;
  for (const LoopShard* shard : shared_.shards) {
    idle += shard->counters_.idle.get();
    all += shard->counters_.connections.get();
  }
  const auto share = [](std::uint64_t count, std::uint64_t ours, std::uint64_t everywhere) {
    const std::uint64_t of = std::max({everywhere, ours, std::uint64_t{1}});
    return static_cast<std::uint32_t>((count * ours + of - 1) / of);
  };
  close_idle(share(std::min(wanted, idle), idle_count(), idle), now - decision.idle_at_least,
             CloseReason::kIdlePressure);
  const bool some_stalled = wanted > idle && decision.stalled_at_least != Duration::max();
  if (!some_stalled || now < next_stall_scan_) return;
  next_stall_scan_ = now + config().tick;
  close_stalled(share(wanted - idle, all_.size(), all), now - decision.stalled_at_least);
}

/// Scans all connections; only at CRITICAL, once per tick.
void LoopShard::close_stalled(std::uint32_t count, TimePoint quiet_since) {
  std::array<Connection*, kStalledPerTick> oldest{};
  const std::size_t most = std::min<std::size_t>(count, oldest.size());
  std::size_t found = 0;
  for (Connection& connection : all_) {
    if (connection.critical() || !connection.waits_for_peer()) continue;
    if (connection.progress_at() > quiet_since) continue;
    std::size_t at = found;
    while (at > 0 && connection.progress_at() < oldest[at - 1]->progress_at()) --at;
    if (at == most) continue;
    found = std::min(found + 1, most);
    for (std::size_t i = found - 1; i > at; --i) oldest[i] = oldest[i - 1];
    oldest[at] = &connection;
  }
  for (std::size_t i = 0; i < found; ++i) oldest[i]->close_now(CloseReason::kIdlePressure);
}

/// False if the oldest belongs to another loop, which closes it, or cannot be closed at once.
bool LoopShard::drop_oldest_stuck() {
  Connection* oldest = oldest_stuck();
  if (oldest == nullptr) return false;
  const auto since = static_cast<std::uint64_t>(to_ns(oldest->blocked_since()));
  for (const LoopShard* shard : shared_.shards) {
    const std::uint64_t other = shard->counters_.oldest_blocked_ns.get();
    if (other != 0 && other < since) return false;
  }
  oldest->close_now(CloseReason::kBackpressure);
  return !oldest->blocked_hook.linked();
}

}  // namespace weir::inline v0::inline server
