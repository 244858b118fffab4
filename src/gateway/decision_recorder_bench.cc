// What the recorder adds to one request: everything that is done for its record and for nothing
// else, from the hash of the request id to the ring.
#include <array>
#include <cstddef>
#include <string>

#include <benchmark/benchmark.h>

#include "core.h"
#include "decision_recorder.h"

namespace weir::inline v0::gateway {
namespace {

config::Config one_upstream() {
  config::Config config;
  config.upstreams.resize(1);
  config.upstreams[0].name = "app";
  config.upstreams[0].endpoints = {*upstream::parse_source("127.0.0.1:1")};
  return config;
}

// Ids of 32 digits, as the gateway draws them. They were written long before: a hash that reads
// what has just been written in other pieces waits for that, which is no part of it.
struct Asked {
  Asked() {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = "5f1c2a00d97b4a6e8c3b1f2e3d4c5b6a";
      ids[i][i] = 'x';
    }
  }
  [[nodiscard]] const std::string& next() noexcept { return ids[++count % ids.size()]; }

  std::array<std::string, 16> ids;
  AdmissionRequest request{.scope = ScopeId::kFirst};
  std::size_t count = 0;
};

// As ProxiedRequest does it.
void record_request(benchmark::State& state) {
  GatewayCore core(one_upstream(), 2, Rng(1), {});
  Asked asked;
  asked.request.actor.key.high = 7;
  TimePoint now = time_from_ns(0);
  for (auto _ : state) {
    policy::RecordedDecision decision;
    decision.request = core.recorder.tag_of_request(asked.next());
    decision.actor = DecisionRecorder::actor_tag(asked.request.actor);
    decision.peer = DecisionRecorder::peer_tag(asked.request.peer);
    decision.scope = static_cast<std::uint16_t>(asked.request.scope);
    decision.mode = core.controller.modes(asked.request.modes).limit;
    const ScopeLoad load = core.controller.load(asked.request.scope);
    decision.limit = load.limit;
    decision.in_flight = load.in_flight;
    decision.waiting = load.waiting;
    now += std::chrono::microseconds(20);
    decision.at = core.recorder.since_start(now);
    decision.latency = std::chrono::milliseconds(3);
    decision.end = policy::DecisionEnd::kOk;
    core.recorder.put(0, decision);
  }
  benchmark::DoNotOptimize(core.recorder.recorded());
}
BENCHMARK(record_request);

void record_hash_of_the_id(benchmark::State& state) {
  GatewayCore core(one_upstream(), 2, Rng(1), {});
  Asked asked;
  for (auto _ : state) {
    benchmark::DoNotOptimize(core.recorder.tag_of_request(asked.next()));
  }
}
BENCHMARK(record_hash_of_the_id);

void record_hash_of_the_id_by_siphash(benchmark::State& state) {
  const SipKey key{.k0 = 1, .k1 = 2};
  Asked asked;
  for (auto _ : state) {
    benchmark::DoNotOptimize(siphash64(key, asked.next()));
  }
}
BENCHMARK(record_hash_of_the_id_by_siphash);

}  // namespace
}  // namespace weir::inline v0::gateway
