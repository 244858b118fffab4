// Read each figure as a multiple of mutex_pair in the same run: the machine's speed cancels out.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include <benchmark/benchmark.h>

#include "weir/base/rng.h"
#include "weir/policy/class_admission.h"
#include "weir/policy/limit_config.h"
#include "weir/policy/memory_shedding.h"
#include "weir/policy/pressure.h"
#include "weir/policy/retry_hint.h"

namespace weir::inline v0::inline policy {
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

// The whole adjustment: the average of 1000 latencies, then the step.
void vegas_update_1000_samples(benchmark::State& state) {
  Rng rng(1);
  std::array<Duration, 1000> latencies{};
  for (Duration& latency : latencies) latency = Duration(rng.between(1'000'000, 50'000'000));
  LimitConfig config;
  config.policy = LimitKind::kVegas;
  const std::unique_ptr<LimitPolicy> vegas = make_limit_policy(config, rng);
  for (auto _ : state) {
    benchmark::DoNotOptimize(latencies.data());
    Duration sum{};
    Duration least = Duration::max();
    for (const Duration latency : latencies) {
      sum += latency;
      least = std::min(least, latency);
    }
    const LimitDecision decision =
        vegas->on_window({.sample_count = static_cast<std::uint32_t>(latencies.size()),
                          .latency_avg = sum / static_cast<std::int64_t>(latencies.size()),
                          .latency_min = least,
                          .in_flight = 100});
    benchmark::DoNotOptimize(decision);
  }
}
BENCHMARK(vegas_update_1000_samples);

// As in production: the window already has the average.
void vegas_step(benchmark::State& state) {
  LimitConfig config;
  config.policy = LimitKind::kVegas;
  const std::unique_ptr<LimitPolicy> vegas = make_limit_policy(config, Rng(1));
  LimitSample window{
      .sample_count = 1000, .latency_avg = std::chrono::milliseconds(5), .in_flight = 100};
  for (auto _ : state) {
    benchmark::DoNotOptimize(window);
    const LimitDecision decision = vegas->on_window(window);
    benchmark::DoNotOptimize(decision);
  }
}
BENCHMARK(vegas_step);

void pressure_evaluation(benchmark::State& state) {
  PressureState seen{.tcp_write_slab_usage = 0.6,
                     .arena_slab_usage = 0.9,
                     .pending_stream_usage = 0.2,
                     .handle_slab_usage = 0.96,
                     .active_connections = 960};
  const PressureConfig config;
  for (auto _ : state) {
    benchmark::DoNotOptimize(seen);
    const PressureDecision decision = evaluate_pressure(seen, config);
    benchmark::DoNotOptimize(decision);
  }
}
BENCHMARK(pressure_evaluation);

void class_decision(benchmark::State& state) {
  ClassCounts counts{{1, 20, 30, 10}};
  const std::uint32_t bound = share_bound(128, 900);
  for (auto _ : state) {
    benchmark::DoNotOptimize(counts);
    benchmark::DoNotOptimize(decide_class(counts, {Priority::kNormal, false, 1}, bound, 0));
  }
}
BENCHMARK(class_decision);

void memory_decision(benchmark::State& state) {
  const ShedShare share(0.5);
  std::uint64_t ordinal = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        decide_memory(MemoryLevel::kPressured, Priority::kLow, ordinal++, share));
  }
}
BENCHMARK(memory_decision);

void retry_hint_known_rate(benchmark::State& state) {
  Rng rng(1);
  DrainState drain{.drained_per_second = 100, .ahead = 20, .fresh = true};
  for (auto _ : state) {
    benchmark::DoNotOptimize(drain);
    benchmark::DoNotOptimize(retry_hint(drain, {}, rng));
  }
}
BENCHMARK(retry_hint_known_rate);

}  // namespace
}  // namespace weir::inline v0::inline policy
