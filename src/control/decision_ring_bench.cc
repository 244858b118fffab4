// What one recorded decision costs the loop that makes it.
#include <benchmark/benchmark.h>

#include "control/decision_ring.h"
#include "policy/recorded_decision.h"

namespace weir::inline v0::inline control {
namespace {

void record_decision(benchmark::State& state) {
  DecisionRing ring(13'000);  // of one of two loops
  policy::RecordedDecision decision;
  decision.actor = 7;
  decision.limit = 100;
  for (auto _ : state) {
    decision.at += std::chrono::microseconds(20);
    ++decision.request;
    ring.put(policy::pack(decision));
  }
  benchmark::DoNotOptimize(ring.put_count());
}
BENCHMARK(record_decision);

}  // namespace
}  // namespace weir::inline v0::inline control
