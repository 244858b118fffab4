// Read each figure as a multiple of mutex_pair in the same run: the machine's speed cancels out.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "weir/base/rng.h"
#include "weir/control/outgoing_queues.h"

#include "control/hedge_executor.h"
#include "control/latency_tracker.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kHedgeBenchStart = time_from_ns(1'000'000'000);

// ---- hedging

std::unique_ptr<LatencyTracker> shared_tracker;
std::unique_ptr<RedundancyBudget> shared_budget;

void latency_record(benchmark::State& state) {
  Rng rng(static_cast<std::uint64_t>(state.thread_index()) + 1);
  std::array<Duration, 1024> latencies{};
  for (Duration& latency : latencies) latency = Duration(rng.between(500'000, 20'000'000));
  std::size_t i = 0;
  for (auto _ : state) {
    shared_tracker->record({latencies[i++ % latencies.size()], AttemptEnd::kAnswered},
                           kHedgeBenchStart);
  }
  state.SetItemsProcessed(state.iterations());
}

// As a request uses it: one record, one delay.
void latency_record_and_delay(benchmark::State& state) {
  for (auto _ : state) {
    shared_tracker->record({milliseconds(2), AttemptEnd::kAnswered}, kHedgeBenchStart);
    benchmark::DoNotOptimize(shared_tracker->hedge_delay(kHedgeBenchStart));
  }
  state.SetItemsProcessed(state.iterations());
}

void budget_acquire(benchmark::State& state) {
  for (auto _ : state) {
    shared_budget->deposit();
    benchmark::DoNotOptimize(shared_budget->try_take());
  }
  state.SetItemsProcessed(state.iterations());
}

/// What hedging adds to a read whose first endpoint answers in time.
void hedge_fast_primary(benchmark::State& state) {
  RedundancyBudget shared;
  RedundancyBudget endpoint;
  HedgeExecutor executor(shared);
  const policy::SafeRead read = policy::SafeRead::of({.safe_method = true}).value();
  for (auto _ : state) {
    const AttemptNumber attempt = executor.begin(read, {}, endpoint);
    executor.on_started(attempt);
    executor.on_written(attempt, milliseconds(5), kHedgeBenchStart);
    benchmark::DoNotOptimize(executor.on_answer(attempt, {}, {.now = kHedgeBenchStart}));
  }
}

void hedge_slow_primary(benchmark::State& state) {
  RedundancyBudget shared({.deposit_millitokens = 1000, .cap_millitokens = 1'000'000});
  std::array<RedundancyBudget, 2> endpoints;
  endpoints[0].set_rules({.deposit_millitokens = 1000, .cap_millitokens = 1'000'000});
  const HedgeCandidate other{.budget = &endpoints[1]};
  HedgeExecutor executor(shared);
  const policy::SafeRead read = policy::SafeRead::of({.safe_method = true}).value();
  const HedgeMoment moment{.now = kHedgeBenchStart + milliseconds(5), .candidates = {&other, 1}};
  for (auto _ : state) {
    shared.deposit();
    endpoints[0].deposit();
    const AttemptNumber first = executor.begin(read, {}, endpoints[0]);
    executor.on_written(first, milliseconds(5), kHedgeBenchStart);
    const HedgeStep hedge = executor.on_timer(moment);
    if (hedge.kind != HedgeStep::Kind::kBegin) state.SkipWithError("was not hedged");
    executor.on_written(hedge.attempt, milliseconds(5), moment.now);
    benchmark::DoNotOptimize(executor.on_answer(hedge.attempt, {}, moment));
  }
}

// ---- outgoing queues

struct BenchItem : OutgoingItem {
  BenchItem() : OutgoingItem() { bytes = 100; }
};

void queue_put_get(benchmark::State& state) {
  OutgoingDirectory directory({});
  OutgoingQueues queues(directory);
  BenchItem item;
  for (auto _ : state) {
    queues.put(7, item, kHedgeBenchStart);
    OutgoingItem* taken = queues.get(7, kHedgeBenchStart);
    queues.finish(*taken, OutgoingEnd::kSent);
  }
}

/// Over as many destinations as the argument says, with a backlog in each.
void queue_put_next(benchmark::State& state) {
  OutgoingDirectory directory({});
  OutgoingQueues queues(directory);
  const auto destinations = static_cast<std::size_t>(state.range(0));
  std::deque<BenchItem> backlog(10 * destinations);
  std::size_t i = 0;
  for (BenchItem& item : backlog) queues.put(i++ % destinations, item, kHedgeBenchStart);
  for (auto _ : state) {
    OutgoingItem* taken = queues.next(kHedgeBenchStart);
    const DestinationKey to = OutgoingQueues::destination_of(*taken);
    queues.finish(*taken, OutgoingEnd::kSent);
    queues.put(to, *taken, kHedgeBenchStart);
  }
  queues.close();
}

/// A critical item through a destination whose queue and ring are full, with in_flight_max in
/// flight.
void critical_probe_at_saturation(benchmark::State& state) {
  OutgoingDirectory directory({});
  OutgoingQueues queues(directory);
  std::deque<BenchItem> flood(1000);
  for (BenchItem& item : flood) queues.put(7, item, kHedgeBenchStart);
  std::vector<OutgoingItem*> flying;
  while (OutgoingItem* item = queues.get(7, kHedgeBenchStart)) flying.push_back(item);
  for (BenchItem& item : flood) {
    if (item.queue() == nullptr) queues.put(7, item, kHedgeBenchStart);
  }
  if (queues.state(7) != policy::OutgoingState::kSaturated) state.SkipWithError("not saturated");
  BenchItem probe;
  probe.priority = Priority::kCritical;
  for (auto _ : state) {
    queues.put(7, probe, kHedgeBenchStart);
    OutgoingItem* taken = queues.next(kHedgeBenchStart);
    if (taken != &probe) state.SkipWithError("the probe waited");
    queues.finish(*taken, OutgoingEnd::kSent);
  }
  for (OutgoingItem* item : flying) queues.finish(*item, OutgoingEnd::kSent);
  queues.close();
}

void setup_tracker(const benchmark::State&) {
  shared_tracker = std::make_unique<LatencyTracker>();
}
void setup_budget(const benchmark::State&) {
  shared_budget = std::make_unique<RedundancyBudget>();
}

BENCHMARK(latency_record)->Setup(setup_tracker)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(latency_record_and_delay)->Setup(setup_tracker)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(budget_acquire)->Setup(setup_budget)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(hedge_fast_primary);
BENCHMARK(hedge_slow_primary);
BENCHMARK(queue_put_get);
BENCHMARK(queue_put_next)->Arg(1)->Arg(100)->Arg(1000);
BENCHMARK(critical_probe_at_saturation);

}  // namespace
}  // namespace weir::inline v0::inline control
