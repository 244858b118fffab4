// Read each figure as a multiple of mutex_pair of policy_bench.cc in the same run.

#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "policy/peak_ewma.h"
#include "policy/replica_choice.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr CohortLatency kBenchCohort{.median = std::chrono::milliseconds(5),
                                     .p99 = std::chrono::milliseconds(17)};

/// As in production: the score is projected when a view is built.
struct BenchReplicas {
  std::vector<PeakEwma> scores;
  TimePoint now = TimePoint{} + std::chrono::seconds(100);
  std::uint32_t out = 0;  // the first of them are ejected

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(scores.size()); }
  [[nodiscard]] ReplicaView view(std::uint32_t i) const {
    return {.openness = i < out ? Openness::kPanicOnly : Openness::kOpen,
            .in_flight = i % 7,
            .in_flight_max = 50,
            .score_ns = projected_ns(scores[i], kBenchCohort, {}, now)};
  }
};

void choose(benchmark::State& state, Balance balance, std::uint32_t size, std::uint32_t out) {
  Rng rng(1);
  BenchReplicas set;
  set.out = out;
  std::vector<HashRing::Member> members;
  for (std::uint32_t i = 0; i < size; ++i) {
    set.scores.push_back({.ns = 4e6 + rng.unit() * 2e6, .updated_at = set.now});
    members.push_back({.key = i + 1});
  }
  const HashRing ring(members);
  ChoiceAsk ask{.balance = balance};
  ask.cohort = {.endpoints = size, .open = size - out, .open_weight = double(size - out)};
  ask.ring = &ring;
  ask.in_flight_total = std::uint64_t{3} * size;
  std::uint64_t cursor = 0;
  for (auto _ : state) {
    ask.hash += 0x9E3779B97F4A7C15U;
    benchmark::DoNotOptimize(choose_replica(set, ask, cursor, rng));
  }
}
BENCHMARK_CAPTURE(choose, peak_ewma_of_3, Balance::kPeakEwma, 3, 0);
BENCHMARK_CAPTURE(choose, peak_ewma_of_3_one_out, Balance::kPeakEwma, 3, 1);
BENCHMARK_CAPTURE(choose, peak_ewma_of_1000, Balance::kPeakEwma, 1000, 0);
BENCHMARK_CAPTURE(choose, round_robin_of_1000, Balance::kRoundRobin, 1000, 0);
BENCHMARK_CAPTURE(choose, least_requests_of_16, Balance::kLeastRequests, 16, 0);
BENCHMARK_CAPTURE(choose, hash_of_1000, Balance::kHash, 1000, 0);

}  // namespace
}  // namespace weir::inline v0::inline policy
