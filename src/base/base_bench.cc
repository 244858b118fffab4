// Read each figure as a multiple of mutex_pair in the same run: the machine's speed cancels out.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <benchmark/benchmark.h>

#include "weir/base/block_pool.h"
#include "weir/base/ring.h"
#include "weir/base/rng.h"
#include "weir/base/siphash.h"
#include "weir/base/slab.h"

namespace weir {
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

void slab_acquire_release(benchmark::State& state) {
  Slab<std::uint64_t> slab(1024);
  for (auto _ : state) {
    const SlabHandle handle = slab.acquire(1U);
    benchmark::DoNotOptimize(slab.get(handle));
    slab.release(handle);
  }
}
BENCHMARK(slab_acquire_release);

void block_pool_acquire_release(benchmark::State& state) {
  BlockPool pool({.block_count = 1024, .block_bytes = 32768});
  for (auto _ : state) {
    std::byte* block = pool.acquire();
    benchmark::DoNotOptimize(block);
    pool.release(block);
  }
}
BENCHMARK(block_pool_acquire_release);

void ring_push_pop(benchmark::State& state) {
  Ring<std::uint64_t> ring(100);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.push_back(1U));
    benchmark::DoNotOptimize(ring.pop_front());
  }
}
BENCHMARK(ring_push_pop);

void rng_next(benchmark::State& state) {
  Rng rng(1);
  for (auto _ : state) benchmark::DoNotOptimize(rng.next_u64());
}
BENCHMARK(rng_next);

void rng_below(benchmark::State& state) {
  Rng rng(1);
  for (auto _ : state) benchmark::DoNotOptimize(rng.below(1000));
}
BENCHMARK(rng_below);

void siphash64_32_bytes(benchmark::State& state) {
  const std::string name(32, 'n');
  SipKey key{1, 2};
  for (auto _ : state) {
    key.k0 = siphash64(key, name);  // chained: latency, as a table lookup sees it
    benchmark::DoNotOptimize(key);
  }
}
BENCHMARK(siphash64_32_bytes);

void siphash128_32_bytes(benchmark::State& state) {
  const std::string name(32, 'n');
  SipKey key{1, 2};
  for (auto _ : state) {
    key.k0 = siphash128(key, name).low;
    benchmark::DoNotOptimize(key);
  }
}
BENCHMARK(siphash128_32_bytes);

}  // namespace
}  // namespace weir
