// The cost of one admission decision, compared with the primitives it is built from.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "weir/control/admission_controller.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart = time_from_ns(1'000'000'000);

AdmissionConfig roomy() {
  AdmissionConfig config;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = config.limit.max_limit = 1024;
  config.inflight_max = 1024;
  config.per_peer_limit = 1024;
  return config;
}

std::unique_ptr<AdmissionController> shared_controller;

void make_controller(const AdmissionConfig& config) {
  shared_controller = std::make_unique<AdmissionController>(config, Rng(7));
}
void drop_controller(const benchmark::State&) {
  shared_controller.reset();
}

/// A request that makes every check do work: deadline, memory, optional peer, actor, bytes.
AdmissionRequest full_request(const std::string& actor) {
  AdmissionRequest request;
  request.actor = shared_controller->identify(actor);
  request.actor.label = {};
  request.bytes = 4096;
  request.deadline = kStart + std::chrono::hours(1);
  return request;
}

/// Time that advances by a microsecond per decision, so that windows close as in production.
class Clock {
 public:
  TimePoint tick() noexcept { return now_ += std::chrono::microseconds(1); }

 private:
  TimePoint now_ = kStart;
};

void admit_finish(benchmark::State& state, const std::string& actor) {
  const AdmissionRequest request = full_request(actor);
  Clock clock;
  for (auto _ : state) {
    auto permit = shared_controller->try_admit(request, clock.tick());
    if (permit) std::move(*permit).finish(Outcome::kOk, clock.tick());
  }
}

void admit_finish_distinct(benchmark::State& state) {
  admit_finish(state, "actor-" + std::to_string(state.thread_index()));
}
void admit_finish_hot(benchmark::State& state) {
  admit_finish(state, "the hot one");
}

void admit_finish_auto(benchmark::State& state) {
  admit_finish(state, "actor-" + std::to_string(state.thread_index()));
}

void admit_refuse(benchmark::State& state) {
  AdmissionRequest request = full_request("actor");
  std::vector<Permit> full;
  if (state.thread_index() == 0) {
    AdmissionRequest filler;
    filler.priority = Priority::kHigh;
    for (;;) {
      auto permit = shared_controller->try_admit(filler, kStart);
      if (!permit) break;
      full.push_back(std::move(permit).value());
    }
  }
  Clock clock;
  for (auto _ : state) {
    benchmark::DoNotOptimize(shared_controller->try_admit(request, clock.tick()).has_value());
  }
}

// ---- the primitives

std::mutex bare_mutex;
std::uint64_t guarded = 0;

void mutex_pair(benchmark::State& state) {
  for (auto _ : state) {
    const std::scoped_lock lock(bare_mutex);
    benchmark::DoNotOptimize(++guarded);
  }
}

std::counting_semaphore<1024> semaphore(1024);

void semaphore_pair(benchmark::State& state) {
  for (auto _ : state) {
    if (semaphore.try_acquire()) semaphore.release();
  }
}

/// The simple way: every check under one mutex. It checks only the limit and the actor.
struct MutexAdmission {
  std::mutex mutex;
  std::uint32_t in_flight = 0;
  std::array<std::uint32_t, 64> actor_count{};
  std::array<std::uint64_t, 64> actor_bytes{};

  bool admit(std::size_t actor, std::uint64_t bytes) {
    const std::scoped_lock lock(mutex);
    if (in_flight >= 1024 || actor_count[actor] >= 1024) return false;
    if (actor_bytes[actor] + bytes > (std::uint64_t{4} << 30U)) return false;
    ++in_flight;
    ++actor_count[actor];
    actor_bytes[actor] += bytes;
    return true;
  }
  void finish(std::size_t actor, std::uint64_t bytes) {
    const std::scoped_lock lock(mutex);
    --in_flight;
    --actor_count[actor];
    actor_bytes[actor] -= bytes;
  }
};
MutexAdmission mutex_admission;

void mutex_guarded_admit(benchmark::State& state) {
  const auto actor = static_cast<std::size_t>(state.thread_index()) % 64;
  for (auto _ : state) {
    if (mutex_admission.admit(actor, 4096)) mutex_admission.finish(actor, 4096);
  }
}

// ---- waiting and lookup

void hand_over(benchmark::State& state) {
  AdmissionConfig config = roomy();
  config.limit.initial_limit = config.limit.min_limit = config.limit.max_limit = 1;
  make_controller(config);
  AdmissionRequest request;
  request.priority = Priority::kHigh;
  Waiter waiter;
  Permit held = shared_controller->try_admit(request, kStart).value();
  for (auto _ : state) {
    const Entered entered = shared_controller->enter(request, waiter, kStart);
    if (entered.kind != Entered::Kind::kWaiting) state.SkipWithError("did not wait");
    held = Permit();
    held = shared_controller->collect(waiter, kStart).value();
  }
  held = Permit();
  shared_controller.reset();
}

void actor_lookup(benchmark::State& state) {
  make_controller([] {
    AdmissionConfig config = roomy();
    config.actor_table_size = 1U << 17U;
    return config;
  }());
  std::vector<AdmissionRequest> requests;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    requests.push_back(full_request("actor-" + std::to_string(i)));
  }
  Rng rng(3);
  Clock clock;
  for (auto _ : state) {
    const AdmissionRequest& request = requests[rng.below(requests.size())];
    auto permit = shared_controller->try_admit(request, clock.tick());
    if (permit) std::move(*permit).finish(Outcome::kOk, clock.tick());
  }
  shared_controller.reset();
}

void setup_roomy(const benchmark::State&) {
  make_controller(roomy());
}
void setup_limit_64(const benchmark::State&) {
  AdmissionConfig config = roomy();
  config.limit.initial_limit = config.limit.max_limit = 64;
  make_controller(config);
}
void setup_auto(const benchmark::State&) {
  AdmissionConfig config = roomy();
  config.limit.policy = LimitKind::kAuto;
  make_controller(config);
}

BENCHMARK(mutex_pair)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(semaphore_pair)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(mutex_guarded_admit)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(admit_finish_distinct)
    ->Name("admit_finish")
    ->Setup(setup_roomy)
    ->Teardown(drop_controller)
    ->Threads(1)
    ->Threads(2)
    ->Threads(8)
    ->UseRealTime();
BENCHMARK(admit_finish_hot)
    ->Name("admit_finish_hot_actor")
    ->Setup(setup_roomy)
    ->Teardown(drop_controller)
    ->Threads(2)
    ->UseRealTime();
BENCHMARK(admit_finish_distinct)
    ->Name("admit_finish_limit_64")
    ->Setup(setup_limit_64)
    ->Teardown(drop_controller)
    ->Threads(8)
    ->UseRealTime();
BENCHMARK(admit_finish_auto)
    ->Setup(setup_auto)
    ->Teardown(drop_controller)
    ->Threads(1)
    ->UseRealTime();
BENCHMARK(admit_refuse)
    ->Setup(setup_limit_64)
    ->Teardown(drop_controller)
    ->Threads(1)
    ->Threads(8)
    ->UseRealTime();
BENCHMARK(hand_over);
BENCHMARK(actor_lookup)->Arg(1)->Arg(1024)->Arg(65536);

}  // namespace
}  // namespace weir::inline v0::inline control
