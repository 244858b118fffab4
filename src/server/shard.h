#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/ring.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/handler.h"

#include "connection.h"
#include "counters.h"
#include "http_date.h"
#include "memory/read_regions.h"
#include "memory/write_buffer_queue.h"
#include "shared.h"

namespace weir::inline v0::inline server {

/// One loop's part of a server: its connections, its lists, its handler, its tick.
///
/// At every tick it evaluates pressure and carries out the decision, and nothing else: closes idle
/// connections, longest idle first (one whose head is late counts as idle), then stalled ones;
/// drops connections that are blocked on their client and streams that are pending for too long.
/// The sweep gives unused memory back to the kernel.
/// Thread-safety: its loop's thread, except hand_over(), counters and load(): any thread.
class LoopShard {
 public:
  LoopShard(ServerShared& shared, io::Loop& loop, std::uint32_t index,
            std::unique_ptr<Handler> handler);
  LoopShard(const LoopShard&) = delete;
  LoopShard& operator=(const LoopShard&) = delete;
  ~LoopShard();

  void start();
  /// Closes everything; calls `done` when the loop uses nothing of this shard any more.
  void stop(io::Callback<> done);
  void drain() {
    for (Connection& connection : all_) connection.drain();
  }
  /// Whether a drain closes connections that have no request: their grace is over.
  [[nodiscard]] bool closes_idle() const noexcept {
    return draining() && to_ns(loop_.now()) >= shared_.idle_until_ns.load();
  }

  /// Takes an accepted socket with its place, from the accepting loop. It never fails: there is
  /// room for every place.
  void hand_over(io::Fd fd, Connection& connection);
  /// Connections of this loop, including those that are being handed over.
  [[nodiscard]] std::uint32_t load() const noexcept {
    return load_.load(std::memory_order_relaxed);
  }

  // For connections and sessions.
  [[nodiscard]] ServerShared& shared() noexcept { return shared_; }
  [[nodiscard]] const ServerConfig& config() const noexcept { return shared_.config; }
  [[nodiscard]] io::Loop& loop() const noexcept { return loop_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  [[nodiscard]] Handler& handler() noexcept { return *handler_; }
  [[nodiscard]] LoopCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const LoopCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::span<http::HeaderView> header_storage() noexcept { return headers_; }
  [[nodiscard]] std::string_view date(TimePoint now);
  [[nodiscard]] bool draining() const noexcept {
    return shared_.draining.load(std::memory_order_acquire);
  }

  [[nodiscard]] ReadRegion lease_region();
  void release_region(const ReadRegion& region);
  /// A small region, for a connection whose TLS or HTTP has not begun.
  [[nodiscard]] ReadRegion lease_stage() { return stages_->lease(); }
  void release_stage(const ReadRegion& region) { stages_->release(region); }

  void set_idle(Connection& connection, bool idle, bool moved);
  void set_incomplete(Connection& connection, bool incomplete);
  void set_blocked(Connection& connection, bool blocked, bool moved);
  [[nodiscard]] WriteBufferQueue& writers() noexcept { return writers_; }
  /// A pool was empty: pressure is evaluated before the turn ends.
  void on_exhausted() noexcept { loop_.defer(judge_task_); }
  /// Stream places, or what handlers have for streams, are short: ends requests that are blocked on
  /// their clients, the worst first (policy/worst_blocked.h), but none of `asks`. True: some have
  /// ended. If this loop has none, the others are asked.
  bool make_room(const Connection& asks);
  /// An arena for a stream, as the pressure decision allows. kPending: `waiter` is queued.
  struct ArenaGrant {
    std::byte* memory = nullptr;
    bool pending = false;
  };
  [[nodiscard]] ArenaGrant acquire_arena(ArenaWaiter& waiter, io::Access access, bool may_wait);
  void release_arena(std::byte* memory) noexcept { shared_.arenas.release(index_, memory); }

  void on_opened(Connection& connection);
  void on_closed(Connection& connection);
  /// Closes the longest idle connection soon. From any thread.
  void request_room() noexcept { loop_.post(room_task_); }
  /// Closes up to `count` idle connections, longest idle first.
  std::uint32_t close_idle(std::uint32_t count, TimePoint quiet_since, CloseReason reason);

 private:
  void take_arrivals();
  void on_tick(TimePoint now);
  void check_incomplete(TimePoint now);
  void judge();
  void obey(PressureDecision decision, TimePoint now);
  void close_connections(const PressureDecision& decision, TimePoint now);
  void close_stalled(std::uint32_t count, TimePoint quiet_since);
  [[nodiscard]] Connection* oldest_stuck() noexcept;
  [[nodiscard]] bool drop_oldest_stuck();
  void answer_arenas() { shared_.arenas.answer(index_); }
  void tell_handshakes();
  void give_room();
  std::uint32_t end_blocked(std::uint32_t wanted, TimePoint now, const Connection* but = nullptr);
  void end_blocked_for_others();
  void keep_places_free();
  [[nodiscard]] std::size_t idle_count() const noexcept { return silent_.size() + idle_.size(); }
  void finish_stop();

  struct Arrival {
    int fd = -1;
    Connection* connection = nullptr;
  };

  ServerShared& shared_;
  io::Loop& loop_;
  const std::uint32_t index_;
  std::unique_ptr<Handler> handler_;
  LoopCounters counters_;
  RegionStack regions_;
  std::unique_ptr<RegionStack> stages_;  // if config().uses_stages()
  std::vector<http::HeaderView> headers_;

  IntrusiveList<Connection, &Connection::all_hook> all_;
  // Idle connections, longest idle first: those without any request yet, and the others.
  IntrusiveList<Connection, &Connection::idle_hook> silent_;
  IntrusiveList<Connection, &Connection::idle_hook> idle_;
  // Connections with an incomplete head, oldest first; idle after config().stall_grace.
  IntrusiveList<Connection, &Connection::incomplete_hook> incomplete_;
  IntrusiveList<Connection, &Connection::blocked_hook> blocked_connections_;
  WriteBufferQueue writers_;

  std::mutex arrivals_mutex_;
  Ring<Arrival> arrivals_;
  std::atomic<std::uint32_t> load_{0};
  io::Task arrivals_task_;
  io::Task arena_task_;
  io::Task judge_task_;
  io::Task room_task_;
  io::Task blocked_task_;
  io::Task handshake_task_;
  io::Timer tick_;
  TimePoint next_sweep_{};
  TimePoint next_stall_scan_{};
  TimePoint next_blocked_scan_{};
  const std::uint64_t source_salt_;
  std::array<char, kHttpDateBytes> date_{};
  TimePoint date_valid_until_{};
  io::Callback<> stopped_;
  bool stopping_ = false;
  bool idle_closed_ = false;  // after the grace of a drain
};

}  // namespace weir::inline v0::inline server
