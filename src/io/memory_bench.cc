// The cost of one memory reading: it is made twice per second, not per request.

#include <mutex>

#include <benchmark/benchmark.h>

#include "weir/experimental/io/memory_reader.h"

namespace weir::io {
namespace {

void mutex_pair(benchmark::State& state) {
  std::mutex mutex;
  for (auto _ : state) {
    mutex.lock();
    benchmark::ClobberMemory();
    mutex.unlock();
  }
}
BENCHMARK(mutex_pair);

void memory_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(io::read_memory());
}
BENCHMARK(memory_read);

/// As the gateway polls: every 500 ms of a simulated clock.
void memory_poll(benchmark::State& state) {
  io::MemoryReader reader;
  TimePoint now{};
  for (auto _ : state) {
    now += std::chrono::milliseconds(500);
    benchmark::DoNotOptimize(reader.read(now, 0.82));
  }
}
BENCHMARK(memory_poll);

}  // namespace
}  // namespace weir::io
