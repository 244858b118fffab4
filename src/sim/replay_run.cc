#include "replay_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "world.h"

namespace weir::inline v0::sim {
namespace {

constexpr std::uint32_t kNoBound = 1'000'000;
constexpr double kTolerance = 0.2;
constexpr double kFewShare = 0.01;  // of the requests: so few refusals more or less are no miss
constexpr double kShortMs = 1;      // the same for p99

/// Within a fifth, or so close that it does not matter.
Deviation deviation(std::string what, double recorded, double replayed, double close) {
  const double off = std::abs(replayed - recorded);
  return {std::move(what), recorded, replayed, off <= std::max(close, kTolerance * recorded)};
}

Scenario scenario_for(const RecordedLoad& load, const ServiceFit& fit, const ReplayCase& with) {
  Scenario scenario;
  scenario.name = "replay";
  scenario.duration = load.length();
  ServiceSpec service;
  service.name = "recorded";
  service.time = fit.time;
  service.workers = with.workers > 0 ? with.workers : fit.saturated ? fit.workers : kNoBound;
  service.admission = with.admission;
  service.admission->scopes_max = 1;
  // The limiter had learned its limit when the window began.
  LimitConfig& limit = service.admission->limit;
  if (!load.decisions.empty() && limit.policy != LimitKind::kFixed) {
    const std::uint32_t least = std::max(1U, limit.min_limit);
    const std::uint32_t then = load.decisions.front().limit;
    if (then > 0) limit.initial_limit = std::clamp(then, least, std::max(least, limit.max_limit));
  }
  scenario.services.push_back(std::move(service));
  scenario.loads.push_back(trace_of(load));
  return scenario;
}

}  // namespace

std::vector<policy::RecordedDecision> replay_run(const RecordedLoad& load, const ServiceFit& fit,
                                                 const ReplayCase& with) {
  std::vector<policy::RecordedDecision> decisions;
  if (load.decisions.empty() || load.length() <= Duration(0)) return decisions;
  decisions.reserve(load.decisions.size());
  const Scenario scenario = scenario_for(load, fit, with);
  World world(scenario);
  world.record_decisions([&](const policy::RecordedDecision& one) { decisions.push_back(one); });
  world.run_until(world.end());
  return decisions;
}

bool ReplayResult::fits() const noexcept {
  return std::all_of(deviations.begin(), deviations.end(),
                     [](const Deviation& one) { return one.fits; });
}

bool ReplayResult::beyond_what_is_known(std::uint32_t workers) const noexcept {
  return forecast && workers == 0 && !fit.saturated && forecast->in_flight_max > fit.workers;
}

ReplayResult replay_and_compare(RecordedLoad load, const AdmissionConfig& recorded,
                                const std::optional<ReplayCase>& other) {
  ReplayResult result;
  result.load = std::move(load);
  result.fit = fit_service(result.load);
  const Duration from = result.load.settle;
  const Duration to = result.load.length();
  result.recorded = result_of(result.load.decisions, result.load.from + from, result.load.to);
  const auto run = [&](const ReplayCase& with) {
    return result_of(replay_run(result.load, result.fit, with), from, to);
  };
  result.replayed = run({.admission = recorded});
  const LoadResult& was = result.recorded;
  const LoadResult& is = result.replayed;
  result.deviations.push_back(deviation("refused", static_cast<double>(was.refused),
                                        static_cast<double>(is.refused),
                                        kFewShare * static_cast<double>(was.asked)));
  result.deviations.push_back(deviation("p99", to_millis(was.p99), to_millis(is.p99), kShortMs));
  if (other && result.fits()) result.forecast = run(*other);
  return result;
}

}  // namespace weir::inline v0::sim
