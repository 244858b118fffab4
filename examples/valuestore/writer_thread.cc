#include "writer_thread.h"

#include <future>
#include <utility>

namespace valuestore {

WriterThread::WriterThread(Storage& storage, const WriterConfig& config)
    : storage_(storage), config_(config), thread_([this] { run(); }) {}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void WriterThread::submit(Change change, OnEnd on_end) {
  const std::size_t bytes = change.record.payload.size();
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < config_.waiting_max &&
        waiting_bytes_ + bytes <= config_.waiting_bytes_max) {
      waiting_bytes_ += bytes;
      waiting_.push_back({std::move(change), std::move(on_end)});
      wake_.notify_one();
      return;
    }
  }
  on_end(ChangeEnd::kBusy);
}

ChangeEnd WriterThread::apply(Change change) {
  std::promise<ChangeEnd> end;
  submit(std::move(change), [&end](ChangeEnd how) { end.set_value(how); });
  return end.get_future().get();
}

std::vector<ChangeEnd> WriterThread::apply_all(std::vector<Change> changes) {
  std::vector<std::promise<ChangeEnd>> promises(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    submit(std::move(changes[i]), [&promises, i](ChangeEnd how) { promises[i].set_value(how); });
  }
  std::vector<ChangeEnd> ends;
  ends.reserve(promises.size());
  for (auto& promise : promises) ends.push_back(promise.get_future().get());
  return ends;
}

WriterThread::Counts WriterThread::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void WriterThread::run() {
  for (;;) {
    std::vector<Waiting> batch = take();
    if (batch.empty()) return;
    std::vector<Change> changes;
    changes.reserve(batch.size());
    for (Waiting& each : batch) changes.push_back(std::move(each.change));
    std::vector<ChangeEnd> ends(changes.size(), ChangeEnd::kFailed);
    storage_.commit(changes, ends);
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].on_end(ends[i]);
  }
}

std::vector<WriterThread::Waiting> WriterThread::take() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
  std::vector<Waiting> batch;
  std::size_t bytes = 0;
  while (!waiting_.empty() && batch.size() < config_.batch_max && bytes < config_.batch_bytes_max) {
    bytes += waiting_.front().change.record.payload.size();
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  waiting_bytes_ -= bytes;
  counts_.changes += batch.size();
  if (!batch.empty()) ++counts_.batches;
  return batch;
}

}  // namespace valuestore
