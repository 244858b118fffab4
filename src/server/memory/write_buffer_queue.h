#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/intrusive_list.h"
#include "weir/experimental/io/loop.h"

#include "connection.h"
#include "counters.h"
#include "memory/write_pool.h"

namespace weir::inline v0::inline server {

struct ServerShared;

/// The queue of one loop's connections that are blocked on the write pool.
///
/// Most of them need one buffer to continue a stream. Each buffer that the pool assigns to this
/// loop goes to the first connection in the queue, which queues again if it needs more. Some need
/// several buffers at once (a response that must be sent whole). If many of them collected buffers,
/// they could block each other forever, so only one at a time collects in the whole server: it is
/// in the queue like the others, and when it is first it stays there until it has enough.
///
///   `line_`     each needs one buffer; the collector, if it is on this loop, needs several
///   `several_`  connections that need several buffers and are not the collector yet
///
/// Promises: in both queues the longest blocked connection is served first; none has to wait for a
/// tick; collected buffers that are no longer needed go back at once.
/// Thread-safety: its loop's thread, except wake_several(), flush_soon() and several_count(): any
/// thread. Cost: O(1) to enter and to leave; a mutex pair when the number of buffers wanted
/// changes.
class WriteBufferQueue {
 public:
  WriteBufferQueue(ServerShared& shared, io::Loop& loop, std::uint32_t index,
                   LoopCounters& counters);
  WriteBufferQueue(const WriteBufferQueue&) = delete;
  WriteBufferQueue& operator=(const WriteBufferQueue&) = delete;

  void start();
  /// Updates whether the connection is blocked on the pool; its outbox says how many buffers it
  /// needs.
  void set_waiting(Connection& connection, bool waits);
  [[nodiscard]] bool any_waiting() const noexcept { return !line_.empty(); }

  /// The collector is done: a connection of this loop may be the next one.
  void wake_several() noexcept { loop_.post(wake_several_task_); }
  /// A connection is blocked on the pool: free buffers in this loop's cache go back to the pool.
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

}  // namespace weir::inline v0::inline server
