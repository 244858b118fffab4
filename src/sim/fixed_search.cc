#include "fixed_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "weir/base/duration_text.h"

#include "compare.h"
#include "scenario_reader.h"

namespace weir::inline v0::sim {
namespace {

constexpr double kAlmost = 0.999;  // a smaller limit with this share of the best goodput is better
constexpr int kRunsExpected = 25;

/// What one limit got in the run, or in one phase.
struct Part {
  double goodput = 0;
  bool quick = true;  // latency is within the bound of the phase
};

/// Of the whole run first, then of each phase.
std::vector<Part> parts_of(const Scenario& scenario, const RunResult& result) {
  const auto goodput = [&result](const SpanTotals& span) {
    const CallTotals all = select(span, result.recorder.cohorts(), std::nullopt, std::nullopt);
    return static_cast<double>(all.ok()) / span.seconds();
  };
  std::vector<Part> all{{goodput(result.recorder.spans().front())}};
  for (const PhaseSpec& phase : scenario.phases) {
    const SpanTotals& span = result.recorder.span({phase.from, phase.to});
    const Duration bound = latency_bound(phase, scenario);
    const Duration p99 = span.services[first_guarded(scenario)].dispatch.quantile(0.99);
    all.push_back({goodput(span), bound.count() == 0 || p99 <= bound});
  }
  return all;
}

bool reached(const Scenario& scenario, const RunResult& result, std::uint32_t limit) {
  const auto& services = result.recorder.spans().front().services;
  for (std::size_t i = 0; i < services.size(); ++i) {
    if (!scenario.services[i].admission) continue;
    if (services[i].refused[index_of(Reason::kOverload)] > 0) return true;
    if (services[i].in_flight_max >= limit) return true;
  }
  return false;
}

class Search {
 public:
  Search(const Scenario& scenario, const Progress& progress)
      : scenario_(scenario), progress_(progress) {}

  void run() {
    std::uint32_t limit = 1;
    // Two doublings that gain nothing: a higher limit only adds to the queue.
    int in_vain = 0;
    std::vector<BestLimit> before = best();
    while (limit < kClassUnitsMax && in_vain < 2 && try_limit(limit)) {
      const std::vector<BestLimit> now = best();
      in_vain = gained(before, now) ? 0 : in_vain + 1;
      before = now;
      limit *= 2;
    }
    if (limit >= kClassUnitsMax && in_vain < 2) static_cast<void>(try_limit(kClassUnitsMax));
    for (const BestLimit& octave : best()) {
      for (const std::uint32_t eighth : {5U, 6U, 7U, 9U, 10U, 12U, 14U}) {
        static_cast<void>(try_limit(std::clamp(octave.limit * eighth / 8, 1U, kClassUnitsMax)));
      }
    }
  }

  /// For the run and each phase.
  [[nodiscard]] std::vector<BestLimit> best() const {
    std::vector<BestLimit> all(1 + scenario_.phases.size());
    for (std::size_t part = 0; part < all.size(); ++part) {
      all[part] = best_of(part);
    }
    return all;
  }
  [[nodiscard]] int runs() const noexcept { return static_cast<int>(tried_.size()); }

 private:
  struct Tried {
    std::uint32_t limit = 0;
    std::vector<Part> parts{};
  };

  static bool gained(const std::vector<BestLimit>& before, const std::vector<BestLimit>& now) {
    for (std::size_t part = 0; part < now.size(); ++part) {
      const double goodput = now[part].goodput;
      if (goodput == 0 || goodput * kAlmost > before[part].goodput) return true;
    }
    return false;
  }

  // A limit that queues more than the phase allows counts only if all do: a queue can postpone
  // refusals, and so seem to serve more than there is capacity for.
  [[nodiscard]] BestLimit best_of(std::size_t part) const {
    const bool any = std::any_of(tried_.begin(), tried_.end(),
                                 [part](const Tried& t) { return t.parts[part].quick; });
    const auto counts = [&](const Tried& t) { return !any || t.parts[part].quick; };
    BestLimit best{kClassUnitsMax, 0};
    for (const Tried& tried : tried_) {
      if (counts(tried)) best.goodput = std::max(best.goodput, tried.parts[part].goodput);
    }
    for (const Tried& tried : tried_) {
      if (!counts(tried) || tried.parts[part].goodput < kAlmost * best.goodput) continue;
      best.limit = std::min(best.limit, tried.limit);
    }
    return best;
  }

  // False if the limit was never reached: a higher one is the same.
  bool try_limit(std::uint32_t limit) {
    for (const Tried& known : tried_) {
      if (known.limit == limit) return true;
    }
    const RunResult result =
        run_scenario(with_limiter(scenario_, {LimitKind::kFixed, false, limit}));
    tried_.push_back({limit, parts_of(scenario_, result)});
    if (progress_) progress_(std::min(1.0, runs() / double{kRunsExpected}), 0);
    return reached(scenario_, result, limit);
  }

  const Scenario& scenario_;
  const Progress& progress_;
  std::vector<Tried> tried_;
};

}  // namespace

bool FixedSearch::oracles_hold(const Scenario& scenario) const noexcept {
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const double off = std::abs(scenario.phases[i].oracle_goodput - phases[i].goodput);
    if (off > kOracleTolerance * phases[i].goodput) return false;
  }
  return true;
}

FixedSearch search_fixed(const Scenario& scenario, const Progress& progress) {
  Search search(scenario, progress);
  search.run();
  FixedSearch found;
  found.phases = search.best();
  found.goodput = found.phases.front().goodput;
  found.limit = found.phases.front().limit;
  found.phases.erase(found.phases.begin());
  const RunResult own = run_scenario(scenario);
  found.runs = search.runs() + 1;
  for (const Part& part : parts_of(scenario, own)) found.own_phases.push_back(part.goodput);
  found.own_goodput = found.own_phases.front();
  found.own_phases.erase(found.own_phases.begin());
  const std::size_t service = first_guarded(scenario);
  found.own_dispatch_p99_ms =
      to_millis(own.recorder.spans().front().services[service].dispatch.quantile(0.99));
  found.unloaded_p99_ms = to_millis(scenario.services[service].time.quantile(0.99));
  return found;
}

std::string printed(const Scenario& scenario, const FixedSearch& search) {
  std::string text;
  const auto out = std::back_inserter(text);
  if (scenario.phases.empty()) {
    fmt::format_to(
        out,
        "  best fixed limit {} gets {:.1f}/s\n"
        "  {:<4} this limiter gets {:.1f}/s, {:.1f} % of it; at least {:.0f} % wanted\n"
        "  {:<4} p99 from dispatch {:.2f} ms, {:.2f} times the unloaded {:.2f} ms; at most "
        "{:.0f}\n",
        search.limit, search.goodput, search.enough_goodput() ? "ok" : "FAIL", search.own_goodput,
        search.goodput > 0 ? 100 * search.own_goodput / search.goodput : 100.0,
        100 * FixedSearch::kGoodputShare, search.quick_enough() ? "ok" : "FAIL",
        search.own_dispatch_p99_ms,
        search.unloaded_p99_ms > 0 ? search.own_dispatch_p99_ms / search.unloaded_p99_ms : 0.0,
        search.unloaded_p99_ms, FixedSearch::kLatencyFactor);
  }
  for (std::size_t i = 0; i < search.phases.size(); ++i) {
    const PhaseSpec& phase = scenario.phases[i];
    const BestLimit& best = search.phases[i];
    const double off = std::abs(phase.oracle_goodput - best.goodput);
    fmt::format_to(out,
                   "  {:<4} phase {}, {} to {}: oracle = {{ limit = {}, goodput = {:.1f} }}; "
                   "the file says {} and {:.1f}; this limiter gets {:.1f} %\n",
                   off <= FixedSearch::kOracleTolerance * best.goodput ? "ok" : "FAIL", phase.name,
                   to_string(phase.from), to_string(phase.to), best.limit, best.goodput,
                   phase.oracle_limit, phase.oracle_goodput,
                   best.goodput > 0 ? 100 * search.own_phases[i] / best.goodput : 100.0);
  }
  return text;
}

}  // namespace weir::inline v0::sim
