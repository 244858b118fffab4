// What one look at the memory costs: it is made twice a second, not per request.

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

}  // namespace
}  // namespace weir::io
