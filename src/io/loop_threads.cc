#include "weir/experimental/io/loop_threads.h"

#include <algorithm>
#include <latch>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "weir/base/assert.h"

#include "small_file.h"

namespace weir::inline v0::io {

struct LoopThreads::Impl {
  explicit Impl(const Options& given) : options(given) {
    const std::uint32_t count = options.count == 0 ? usable_cores() : options.count;
    for (std::uint32_t i = 0; i < count; ++i) loops.push_back(std::make_unique<Loop>());
  }

  void run(std::uint32_t index) {
    const std::string name = options.name.substr(0, 11) + '-' + std::to_string(index % 1000);
    static_cast<void>(::pthread_setname_np(::pthread_self(), name.c_str()));
    if (options.pin) pin(index);
    loops[index]->run();
  }

  void pin(std::uint32_t index) const {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int skip = static_cast<int>(index) % std::max(CPU_COUNT(&allowed), 1);
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      static_cast<void>(::pthread_setaffinity_np(::pthread_self(), sizeof one, &one));
      return;
    }
  }

  Options options;
  std::vector<std::unique_ptr<Loop>> loops;
  std::vector<std::thread> threads;
};

LoopThreads::LoopThreads() : LoopThreads(Options{}) {}
LoopThreads::LoopThreads(const Options& options) : impl_(std::make_unique<Impl>(options)) {}

LoopThreads::~LoopThreads() {
  stop();
}

void LoopThreads::start() {
  WEIR_ASSERT(impl_->threads.empty());
  std::latch running(static_cast<std::ptrdiff_t>(impl_->loops.size()));
  for (std::uint32_t i = 0; i < impl_->loops.size(); ++i) {
    impl_->loops[i]->post([&running] { running.count_down(); });
    impl_->threads.emplace_back([this, i] { impl_->run(i); });
  }
  running.wait();
}

void LoopThreads::stop() {
  for (std::size_t i = 0; i < impl_->threads.size(); ++i) impl_->loops[i]->stop();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

std::uint32_t LoopThreads::size() const noexcept {
  return static_cast<std::uint32_t>(impl_->loops.size());
}

Loop& LoopThreads::at(std::uint32_t index) noexcept {
  return *impl_->loops[index];
}

std::uint32_t usable_cores() noexcept {
  cpu_set_t allowed;
  std::uint32_t cores = 1;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    cores = static_cast<std::uint32_t>(std::max(CPU_COUNT(&allowed), 1));
  }
  // cgroup v2: "max 100000" or "150000 100000".
  const SmallFile file("/sys/fs/cgroup/cpu.max");
  const std::string_view text = file.text();
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return cores;
  const auto quota = whole_number(text.substr(0, blank));
  const auto period = whole_number(text.substr(blank + 1));
  if (!quota || !period || *period == 0) return cores;
  const std::uint64_t granted = std::max<std::uint64_t>((*quota + *period - 1) / *period, 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(cores, granted));
}

}  // namespace weir::inline v0::io
