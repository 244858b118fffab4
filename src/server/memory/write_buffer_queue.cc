#include "memory/write_buffer_queue.h"

#include <algorithm>
#include <utility>

#include "shard.h"
#include "shared.h"

namespace weir::inline v0::inline server {

WriteBufferQueue::WriteBufferQueue(ServerShared& shared, io::Loop& loop, std::uint32_t index,
                                   LoopCounters& counters)
    : shared_(shared),
      loop_(loop),
      index_(index),
      counters_(counters),
      serve_task_(io::Callback<>::to<&WriteBufferQueue::serve>(*this)),
      wake_several_task_(io::Callback<>::to<&WriteBufferQueue::gather>(*this)),
      flush_task_(io::Callback<>::to<&WriteBufferQueue::flush_cache>(*this)) {}

void WriteBufferQueue::start() {
  shared_.writes.blocks().attach(index_, loop_, serve_task_);
}

void WriteBufferQueue::set_waiting(Connection& connection, bool waits) {
  bool was_in_line = connection.writer_hook.linked();
  const bool wanted_several = connection.several_hook.linked();
  if (!waits && !was_in_line && !wanted_several) return;  // the usual case
  const bool greedy = waits && connection.output().needed() > 1;
  const bool in_line = waits && !greedy;
  if (gatherer_ == &connection) {
    if (greedy) return tell();
    line_.remove(connection);
    was_in_line = false;
    stop_gathering();
  }
  if (was_in_line && !in_line) line_.remove(connection);
  if (wanted_several && !greedy) several_.remove(connection);
  if (in_line && !was_in_line) enter_line(connection);
  if (greedy && !wanted_several) several_.push_back(connection);
  several_count_.store(static_cast<std::uint32_t>(several_.size()));
  if (greedy) gather();
  tell();
}

void WriteBufferQueue::enter_line(Connection& connection) {
  connection.critical() ? line_.push_front(connection) : line_.push_back(connection);
}

/// The longest blocked connection becomes the collector, if the server has none. A loop whose
/// collector stops reads several_count() afterwards, so at least one of two loops sees the other.
void WriteBufferQueue::gather() {
  if (gatherer_ != nullptr || several_.empty() || shared_.collecting.exchange(true)) return;
  gatherer_ = several_.pop_front();
  several_count_.store(static_cast<std::uint32_t>(several_.size()));
  enter_line(*gatherer_);
  tell();
}

void WriteBufferQueue::stop_gathering() noexcept {
  gatherer_ = nullptr;
  gathered_count_ = 0;
  while (gathered_ != nullptr) {
    shared_.writes.release(index_, std::exchange(gathered_, gathered_->next));
  }
  shared_.collecting.store(false);
  // The next loop first, this one last: each loop gets its turn.
  const std::size_t loops = shared_.shards.size();
  for (std::size_t i = 1; i <= loops; ++i) {
    WriteBufferQueue& other = shared_.shards[(index_ + i) % loops]->writers();
    if (other.several_count() > 0) other.wake_several();
  }
}

/// Gives buffers to this loop's connections: as many as were wanted at the start, so that the
/// sockets get a turn before connections that are blocked again.
void WriteBufferQueue::serve() {
  for (std::uint32_t left = told_; left > 0; --left) {
    Connection* next = line_.front();
    if (next == nullptr) break;
    WriteBuffer* buffer = shared_.writes.take_handed(index_);
    if (buffer == nullptr) break;
    if (next == gatherer_) {
      buffer->next = std::exchange(gathered_, buffer);
      if (++gathered_count_ < next->output().needed()) continue;
      buffer = std::exchange(gathered_, nullptr);
      line_.remove(*next);
      stop_gathering();
    } else {
      line_.remove(*next);
    }
    next->resume_output(buffer);
  }
  tell();
}

void WriteBufferQueue::flush_cache() {
  shared_.writes.blocks().flush(index_);
}

/// Sets how many buffers this loop needs from the pool.
void WriteBufferQueue::tell() {
  counters_.pending_writes.set(line_.size() + several_.size());
  auto wanted = static_cast<std::uint32_t>(line_.size());
  if (gatherer_ != nullptr) {
    // At least one more: its need may have shrunk, and it continues only when a buffer arrives.
    wanted += std::max(gatherer_->output().needed(), gathered_count_ + 1) - gathered_count_ - 1;
  }
  if (wanted == told_) return;
  if (told_ == 0) {
    for (LoopShard* shard : shared_.shards) shard->writers().flush_soon();
  }
  told_ = wanted;
  shared_.writes.blocks().set_waiting(index_, wanted);
}

}  // namespace weir::inline v0::inline server
