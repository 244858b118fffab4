#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <utility>

#include "weir/base/result.h"
#include "weir/base/time.h"

#include "record.h"
#include "storage.h"
#include "value_key.h"
#include "worker_pool.h"

namespace valuestore {

/// Reads of the own store, on threads of their own: they wait for nothing but the disk, so nodes
/// that wait for each other's reads cannot block each other.
///
/// `slowness` is added to each read: the capacity is then readers / slowness, for trials.
/// Thread-safety: any thread.
class LocalReader {
 public:
  using Read = weir::Result<Record, Storage::Miss>;

  LocalReader(const Storage& storage, std::size_t readers, weir::Duration slowness)
      : storage_(storage), slowness_(slowness), pool_(readers) {}

  /// `done` is called on one of the reading threads.
  void start(const ValueKey& key, std::function<void(Read)> done) {
    pool_.run([this, key, done = std::move(done)] {
      be_slow();
      done(storage_.read(key));
    });
  }
  [[nodiscard]] Read read(const ValueKey& key) {
    std::promise<Read> promise;
    start(key, [&promise](Read read) { promise.set_value(std::move(read)); });
    return promise.get_future().get();
  }
  /// Other work with the store that waits for nothing but the disk.
  void run(std::function<void()> task) {
    pool_.run([this, task = std::move(task)] {
      be_slow();
      task();
    });
  }

 private:
  void be_slow() const {
    if (slowness_ == weir::Duration(0)) return;
    std::promise<void> never;
    never.get_future().wait_for(slowness_);
  }

  const Storage& storage_;
  const weir::Duration slowness_;
  WorkerPool pool_;
};

}  // namespace valuestore
