#include "io/background.h"

#include <utility>

#include <pthread.h>

namespace weir::inline v0::io {

Background::Background(Duration every, std::function<void()> work)
    : every_(every), work_(std::move(work)), thread_([this] { run(); }) {}

void Background::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Background::run() {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "weir-disk"));
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    last = wake_.wait_for(lock, every_, [this] { return stopping_; });
    lock.unlock();
    work_();
    lock.lock();
  }
}

}  // namespace weir::inline v0::io
