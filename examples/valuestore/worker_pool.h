#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace valuestore {

/// Threads that run tasks in order of arrival, for handlers that block: gRPC's own threads must
/// not. The queue has no bound of its own; admission bounds how many requests are in the server.
///
/// Thread-safety: any thread. Lifetime: the destructor runs what is queued, then ends the threads.
class WorkerPool {
 public:
  explicit WorkerPool(std::size_t threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void run(std::function<void()> task);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace valuestore
