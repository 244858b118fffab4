#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/intrusive_list.h"
#include "weir/experimental/io/loop.h"

#include "connection.h"
#include "counters.h"
#include "memory/write_pool.h"

namespace weir::inline v0::server {

struct ServerShared;

/// The connections of one loop that wait for write buffers, and whose turn it is.
///
/// Most need one, to go on with a stream: they stand in line, and each buffer that the pool hands
/// to this loop goes to the one in front, who queues again when it is still hungry. Some need
/// several at once (a response that must be whole). If many of them gathered buffers they could
/// hold them against each other for ever, so in the whole server one at a time does: it stands in
/// line like the others, and when it is in front it stays there until it has as many as it needs.
///
///   `line_`      each waits for one buffer; the gatherer, if it is of this loop, for several
///   `several_`    waits until it may be the gatherer
///
/// Promises: who waits longest is served first, of both kinds; nobody waits for a tick; buffers
/// that were gathered for one who does not want them any more go back at once.
/// Thread-safety: its loop's, but wake_several(), flush_soon() and several_count(), which are
/// any_waiting's. Cost: O(1) to enter and to leave; a mutex pair when the number of buffers wanted
/// changes.
class WriteBufferQueue {
 public:
  WriteBufferQueue(ServerShared& shared, io::Loop& loop, std::uint32_t index,
                   LoopCounters& counters);
  WriteBufferQueue(const WriteBufferQueue&) = delete;
  WriteBufferQueue& operator=(const WriteBufferQueue&) = delete;

  void start();
  /// Whether the connection waits now; how much for, its output says.
  void set_waiting(Connection& connection, bool waits);
  [[nodiscard]] bool any_waiting() const noexcept { return !line_.empty(); }

  /// Nobody gathers any more: perhaps somebody here would.
  void wake_several() noexcept { loop_.post(wake_several_task_); }
  /// Somebody waits: free buffers that this loop keeps for itself go back to the pool.
  void flush_soon() noexcept { loop_.post(flush_task_); }
  [[nodiscard]] std::uint32_t several_count() const noexcept { return several_count_.load(); }

 private:
  void enter_line(Connection& connection);
  void serve();
  void gather();
  void stop_gathering() noexcept;
  void flush_cache();
  void tell();

  ServerShared& shared_;
  io::Loop& loop_;
  const std::uint32_t index_;
  LoopCounters& counters_;
  IntrusiveList<Connection, &Connection::writer_hook> line_;
  IntrusiveList<Connection, &Connection::several_hook> several_;
  std::atomic<std::uint32_t> several_count_{0};
  Connection* gatherer_ = nullptr;
  WriteBuffer* gathered_ = nullptr;
  std::uint32_t gathered_count_ = 0;
  std::uint32_t told_ = 0;
  io::Task serve_task_;
  io::Task wake_several_task_;
  io::Task flush_task_;
};

}  // namespace weir::inline v0::server
