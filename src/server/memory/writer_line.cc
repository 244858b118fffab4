#include "memory/writer_line.h"

#include <algorithm>
#include <utility>

#include "shard.h"
#include "shared.h"

namespace weir::inline v0::server {

WriterLine::WriterLine(ServerShared& shared, io::Loop& loop, std::uint32_t index,
                       LoopCounters& counters)
    : shared_(shared),
      loop_(loop),
      index_(index),
      counters_(counters),
      serve_task_(io::Callback<>::to<&WriterLine::serve>(*this)),
      knock_task_(io::Callback<>::to<&WriterLine::gather>(*this)),
      flush_task_(io::Callback<>::to<&WriterLine::flush_cache>(*this)) {}

void WriterLine::start() {
  shared_.writes.blocks().attach(index_, loop_, serve_task_);
}

void WriterLine::set_waiting(Connection& connection, bool waits) {
  bool was_in_line = connection.writer_hook.linked();
  const bool was_greedy = connection.greedy_hook.linked();
  if (!waits && !was_in_line && !was_greedy) return;  // as good as always
  const bool greedy = waits && connection.output().needed() > 1;
  const bool in_line = waits && !greedy;
  if (gatherer_ == &connection) {
    if (greedy) return tell();
    line_.remove(connection);
    was_in_line = false;
    stop_gathering();
  }
  if (was_in_line && !in_line) line_.remove(connection);
  if (was_greedy && !greedy) greedy_.remove(connection);
  if (in_line && !was_in_line) enter_line(connection);
  if (greedy && !was_greedy) greedy_.push_back(connection);
  greedy_count_.store(static_cast<std::uint32_t>(greedy_.size()));
  if (greedy) gather();
  tell();
}

void WriterLine::enter_line(Connection& connection) {
  if (connection.critical()) {
    line_.push_front(connection);
  } else {
    line_.push_back(connection);
  }
}

/// The one who waits longest gathers, if nobody else in the server does. Who gives that up looks at
/// greedy_count() afterwards, so one of the two sees the other.
void WriterLine::gather() {
  if (gatherer_ != nullptr || greedy_.empty() || shared_.collecting.exchange(true)) return;
  gatherer_ = greedy_.pop_front();
  greedy_count_.store(static_cast<std::uint32_t>(greedy_.size()));
  enter_line(*gatherer_);
  tell();
}

void WriterLine::stop_gathering() noexcept {
  gatherer_ = nullptr;
  gathered_count_ = 0;
  while (gathered_ != nullptr) {
    shared_.writes.release(index_, std::exchange(gathered_, gathered_->next));
  }
  shared_.collecting.store(false);
  // The next loop first, this one last: all of them come to it.
  const std::size_t loops = shared_.shards.size();
  for (std::size_t i = 1; i <= loops; ++i) {
    WriterLine& other = shared_.shards[(index_ + i) % loops]->writers();
    if (other.greedy_count() > 0) other.knock();
  }
}

/// Hands out what came for this loop: as many as were waited for when it began, so that those who
/// are hungry again let the sockets have a turn.
void WriterLine::serve() {
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

void WriterLine::flush_cache() {
  shared_.writes.blocks().flush(index_);
}

/// Tells the pool how many buffers are wanted here.
void WriterLine::tell() {
  counters_.pending_writes.set(line_.size() + greedy_.size());
  auto wanted = static_cast<std::uint32_t>(line_.size());
  if (gatherer_ != nullptr) {
    // One more at the least: what it needs may have shrunk, and it is told when a buffer comes.
    wanted += std::max(gatherer_->output().needed(), gathered_count_ + 1) - gathered_count_ - 1;
  }
  if (wanted == told_) return;
  if (told_ == 0) {
    for (LoopShard* shard : shared_.shards) shard->writers().flush_soon();
  }
  told_ = wanted;
  shared_.writes.blocks().set_waiting(index_, wanted);
}

}  // namespace weir::inline v0::server
