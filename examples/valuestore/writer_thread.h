#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "storage.h"

namespace valuestore {

struct WriterConfig {
  std::size_t waiting_max = 1024;  // changes
  std::size_t waiting_bytes_max = 64 << 20;
  std::size_t batch_bytes_max = 1 << 20;
  std::size_t batch_max = 256;
};

/// The one thread that writes to a Storage: what waits while an fsync runs goes into the next
/// batch, so that one fsync serves many changes (group commit).
///
/// Promises: `on_end` is called once for each change, on the writer's thread, or by submit() itself
/// if too much waits (kBusy). What waits is bounded.
/// Thread-safety: any thread. Lifetime: the destructor writes what waits, then ends the thread.
class WriterThread {
 public:
  using OnEnd = std::function<void(ChangeEnd)>;

  explicit WriterThread(Storage& storage, const WriterConfig& config = {});
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  void submit(Change change, OnEnd on_end);
  /// Waits for the end. Not on the writer's thread.
  ChangeEnd apply(Change change);
  /// As apply(), for many at once.
  std::vector<ChangeEnd> apply_all(std::vector<Change> changes);

  struct Counts {
    std::uint64_t changes = 0;
    std::uint64_t batches = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Waiting {
    Change change;
    OnEnd on_end;
  };

  void run();
  [[nodiscard]] std::vector<Waiting> take();

  Storage& storage_;
  const WriterConfig config_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  Counts counts_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace valuestore
