#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "weir/base/duration_text.h"

#include "chart.h"
#include "report.h"

namespace weir::inline v0::sim {
namespace {

constexpr std::array<const char*, kPriorityCount> kClassColors = {"#8e44ad", "#d55e00", "#0072b2",
                                                                  "#009e73"};
constexpr std::size_t kPointsMax = 200;
constexpr std::size_t kServicesMax = 3;

/// Groups of buckets, so that a diagram has a readable number of points.
struct Grouping {
  const Recorder& recorder;
  std::size_t group = 1;

  explicit Grouping(const Recorder& r) : recorder(r) {
    group = std::max<std::size_t>(1, (r.series().size() + kPointsMax - 1) / kPointsMax);
  }
  [[nodiscard]] double seconds() const {
    return to_seconds(recorder.bucket()) * static_cast<double>(group);
  }
  /// The average of `value` over the buckets of each group, without negative values.
  template <class Value>
  [[nodiscard]] std::vector<double> average(const Value& value) const {
    std::vector<double> points;
    const auto& series = recorder.series();
    for (std::size_t i = 0; i < series.size(); i += group) {
      double sum = 0;
      double count = 0;
      for (std::size_t j = i; j < std::min(series.size(), i + group); ++j) {
        const double v = value(series[j]);
        if (v < 0) continue;
        sum += v;
        ++count;
      }
      points.push_back(count > 0 ? sum / count : -1);
    }
    return points;
  }
};

bool has_class(const Recorder& recorder, Priority p) {
  return std::any_of(recorder.cohorts().begin(), recorder.cohorts().end(),
                     [p](const Cohort& c) { return c.priority == p; });
}

template <class Field>
std::vector<double> per_second(const Grouping& g, Priority p, Field field) {
  const double seconds = to_seconds(g.recorder.bucket());
  return g.average([&](const SeriesPoint& point) {
    double sum = 0;
    for (std::size_t i = 0; i < point.calls.size(); ++i) {
      if (g.recorder.cohorts()[i].priority == p) sum += point.calls[i].*field;
    }
    return sum / seconds;
  });
}

ChartPanel calls_panel(const Grouping& g) {
  ChartPanel panel{
      "Calls: offered (dashed) and answered in time (goodput)", "calls per second", false, {}};
  for (const Priority p : kPriorities) {
    if (!has_class(g.recorder, p)) continue;
    const std::string color = kClassColors[index_of(p)];
    panel.lines.push_back({fmt::format("offered, {}", name_of(p)), color, "5 4", false, false,
                           per_second(g, p, &SeriesPoint::Calls::offered)});
    panel.lines.push_back({fmt::format("goodput, {}", name_of(p)), color, "", false, false,
                           per_second(g, p, &SeriesPoint::Calls::ok)});
  }
  return panel;
}

ChartPanel shed_panel(const Grouping& g) {
  ChartPanel panel{
      "Shed: attempts refused by admission, retries included", "attempts per second", false, {}};
  for (const Priority p : kPriorities) {
    if (!has_class(g.recorder, p)) continue;
    panel.lines.push_back({fmt::format("shed, {}", name_of(p)), kClassColors[index_of(p)], "",
                           false, false, per_second(g, p, &SeriesPoint::Calls::refused)});
  }
  return panel;
}

ChartPanel latency_panel(const Grouping& g) {
  const auto line = [&g](const char* label, const char* color, float SeriesPoint::*field) {
    return ChartLine{label,
                     color,
                     "",
                     false,
                     false,
                     g.average([field](const SeriesPoint& p) {
                       return p.*field > 0 ? double{p.*field} : -1.0; })};
  };
  return {"Latency of answered calls, as the client sees it",
          "milliseconds, log scale",
          true,
          {line("99th percentile", "#d55e00", &SeriesPoint::p99_ms),
           line("90th percentile", "#e69f00", &SeriesPoint::p90_ms),
           line("median", "#56b4e9", &SeriesPoint::p50_ms)}};
}

ChartPanel service_panel(const Grouping& g, const ServiceSpec& spec, std::size_t index) {
  const auto line = [&](std::string label, const char* color, bool stepped,
                        std::uint32_t SeriesPoint::Service::*field) {
    return ChartLine{
        std::move(label), color, "", false, stepped, g.average([&](const SeriesPoint& p) {
          return static_cast<double>(p.services[index].*field);
        })};
  };
  ChartPanel panel{"", "requests", false, {}};
  panel.lines.push_back(line("in flight", "#0072b2", false, &SeriesPoint::Service::in_flight));
  if (spec.admission) {
    panel.title = fmt::format("Service {}: limit in force ({}) and requests in flight", spec.name,
                              name_of(spec.admission->limit.policy));
    panel.lines.push_back(line("limit", "#000000", true, &SeriesPoint::Service::limit));
  } else {
    panel.title = fmt::format("Service {}, without admission: requests in flight", spec.name);
  }
  return panel;
}

ChartPanel memory_panel(const Grouping& g, const ServiceSpec& spec, std::size_t index) {
  return {fmt::format("Service {}: memory in use", spec.name),
          "share of its limit",
          false,
          {{"memory", "#8e44ad", "", false, false,
            g.average([index](const SeriesPoint& p) { return p.services[index].memory; })}}};
}

std::vector<ChartMark> marks_of(const Scenario& scenario) {
  std::vector<ChartMark> marks;
  for (const ServiceSpec& service : scenario.services) {
    for (const FaultSpec& fault : service.faults) {
      constexpr std::array<const char*, 5> kNames = {"paused", "slow", "down", "errors", "workers"};
      const bool for_ever = fault.lasts.count() == 0;
      const Duration end = for_ever ? scenario.duration : fault.at + fault.lasts;
      std::string label =
          fmt::format("{} {}", service.name, kNames[static_cast<std::size_t>(fault.kind)]);
      if (fault.kind == FaultKind::kSlow) label += fmt::format(" × {:g}", fault.factor);
      if (fault.kind == FaultKind::kWorkers) label += fmt::format(": {}", fault.workers);
      marks.push_back({to_seconds(fault.at), to_seconds(end), std::move(label)});
    }
  }
  return marks;
}

}  // namespace

std::string plot_svg(const Scenario& scenario, const RunResult& result) {
  const Grouping g(result.recorder);
  std::size_t held = 0;
  for (const VerdictResult& verdict : result.verdicts) held += verdict.holds ? 1 : 0;
  Chart chart;
  chart.title = scenario.name;
  chart.subtitle = fmt::format("{} simulated, seed {}; {} of {} verdicts hold; {} calls",
                               to_string(scenario.duration), scenario.seed, held,
                               result.verdicts.size(), result.balance.started);
  chart.seconds_per_point = g.seconds();
  chart.marks = marks_of(scenario);
  chart.panels = {calls_panel(g), shed_panel(g), latency_panel(g)};
  for (std::size_t i = 0; i < std::min(kServicesMax, scenario.services.size()); ++i) {
    chart.panels.push_back(service_panel(g, scenario.services[i], i));
    if (scenario.services[i].memory) {
      chart.panels.push_back(memory_panel(g, scenario.services[i], i));
    }
  }
  return chart.to_svg();
}

}  // namespace weir::inline v0::sim
