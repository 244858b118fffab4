#include <algorithm>
#include <utility>

#include "scenario_reader.h"

// Phases: parts of a run that are compared with the best fixed limit.

namespace weir::inline v0::sim {
namespace {

constexpr double kLightShed = 0.001;

// The p99 of the slowest kind of call to the service behind a limiter, without any queue.
Duration unloaded_p99(const Scenario& scenario, std::uint32_t guarded) {
  const ServiceSpec& gate = scenario.services[guarded];
  const std::uint32_t worker = gate.calls.empty() ? guarded : gate.calls.front().to;
  if (worker >= scenario.services.size()) return {};
  Duration slowest{};
  for (const LoadSpec& load : scenario.loads) {
    if (load.to != guarded) continue;
    const Distribution& time = load.time ? *load.time : scenario.services[worker].time;
    slowest = std::max(slowest, time.quantile(0.99));
  }
  return slowest;
}

}  // namespace

std::uint32_t first_guarded(const Scenario& scenario) noexcept {
  for (std::uint32_t i = 0; i < scenario.services.size(); ++i) {
    if (scenario.services[i].admission) return i;
  }
  return 0;
}

void read_phase(NodeReader& reader, const Scenario& scenario, PhaseSpec& out) {
  reader.text("name", out.name);
  reader.require("name", "a name, used in the verdicts");
  reader.duration("from", out.from);
  reader.duration("to", out.to);
  reader.boolean("light", out.light);
  reader.number("goodput_min", out.goodput_min, 0.0, 1.0);
  reader.number("latency_max", out.latency_max, 0.0, 1000.0);
  reader.duration("unloaded", out.unloaded);
  reader.table("oracle", [&out](NodeReader& r) {
    r.whole("limit", out.oracle_limit, 1U, 16383U);
    r.number("goodput", out.oracle_goodput, 0.0, 1e9);
  });
  if (out.to.count() == 0) out.to = scenario.duration;
  if (out.from >= out.to || out.to > scenario.duration) {
    reader.fault("from", "the phase is empty or beyond the end of the run", "from < to ≤ duration");
  }
}

Duration latency_bound(const PhaseSpec& phase, const Scenario& scenario) {
  const Duration unloaded =
      phase.unloaded.count() > 0 ? phase.unloaded : unloaded_p99(scenario, first_guarded(scenario));
  return Duration(
      static_cast<std::int64_t>(phase.latency_max * static_cast<double>(unloaded.count())));
}

std::vector<VerdictSpec> verdicts_of(const PhaseSpec& phase, const Scenario& scenario) {
  std::vector<VerdictSpec> all;
  if (scenario.services.empty()) return all;
  VerdictSpec verdict;
  verdict.from = phase.from;
  verdict.to = phase.to;
  verdict.service = first_guarded(scenario);
  if (phase.oracle_goodput > 0) {
    verdict.name = phase.name + ": goodput of the best fixed limit";
    verdict.measure = Measure::kGoodput;
    verdict.min = phase.goodput_min * phase.oracle_goodput;
    all.push_back(verdict);
    verdict.min.reset();
  }
  if (phase.light) {
    verdict.name = phase.name + ": light load is not refused";
    verdict.measure = Measure::kShedRatio;
    verdict.max = kLightShed;
    all.push_back(verdict);
  }
  if (const Duration bound = latency_bound(phase, scenario); bound.count() > 0) {
    verdict.name = phase.name + ": no queue inside the service";
    verdict.measure = Measure::kDispatchP99;
    verdict.max = to_millis(bound);
    all.push_back(verdict);
  }
  return all;
}

}  // namespace weir::inline v0::sim
