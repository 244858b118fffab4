#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/experimental/io/loop.h"

namespace weir::inline v0::io {

/// Several loops, one thread each.
///
/// Promises: start() returns when every loop runs; stop() ends and joins all of them, and may be
/// called twice. Threads are named `name`-0, `name`-1, …
/// Thread-safety: one owner. Lifetime: the destructor stops the loops.
class LoopThreads {
 public:
  struct Options {
    std::uint32_t count = 0;  // 0: one per core this process may use
    bool pin = false;         // each thread to one core
    std::string name = "weir";
  };
  LoopThreads();
  explicit LoopThreads(const Options& options);
  LoopThreads(const LoopThreads&) = delete;
  LoopThreads& operator=(const LoopThreads&) = delete;
  ~LoopThreads();

  void start();
  void stop();

  [[nodiscard]] std::uint32_t size() const noexcept;
  [[nodiscard]] Loop& at(std::uint32_t index) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The number of cores this process may use, by affinity mask and cgroup quota; at least 1.
[[nodiscard]] std::uint32_t usable_cores() noexcept;

}  // namespace weir::inline v0::io
