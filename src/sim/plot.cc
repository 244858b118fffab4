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
constexpr std::size_t kGroupsMax = 4;

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

/// Services that share a panel: one, or all of a group.
struct ServiceGroup {
  std::string name{};
  std::vector<std::size_t> members{};
};

std::vector<ServiceGroup> groups_of(const Scenario& scenario) {
  std::vector<ServiceGroup> groups;
  for (std::size_t i = 0; i < scenario.services.size(); ++i) {
    const ServiceSpec& spec = scenario.services[i];
    const auto known = std::find_if(groups.begin(), groups.end(), [&spec](const auto& group) {
      return !spec.group.empty() && group.name == spec.group;
    });
    if (known != groups.end()) {
      known->members.push_back(i);
    } else {
      groups.push_back({spec.group.empty() ? "Service " + spec.name : spec.group, {i}});
    }
  }
  return groups;
}

// A group shows its sums; limits that differ much inside a group show in the least and the most.
ChartPanel service_panel(const Grouping& g, const Scenario& scenario, const ServiceGroup& group) {
  using Field = std::uint32_t SeriesPoint::Service::*;
  const auto sum = [&](Field field) {
    return g.average([&group, field](const SeriesPoint& p) {
      double all = 0;
      for (const std::size_t i : group.members) all += p.services[i].*field;
      return all;
    });
  };
  const ServiceSpec& spec = scenario.services[group.members.front()];
  ChartPanel panel{group.name + ", without admission: requests in flight", "requests", false, {}};
  panel.lines.push_back(
      {"in flight", "#0072b2", "", false, false, sum(&SeriesPoint::Service::in_flight)});
  if (!spec.admission) return panel;
  panel.title = fmt::format("{}: limit in force ({}) and requests in flight", group.name,
                            name_of(spec.admission->limit.policy));
  if (group.members.size() > 1) panel.title += fmt::format(", sums of {}", group.members.size());
  panel.lines.push_back({"limit", "#000000", "", false, true, sum(&SeriesPoint::Service::limit)});
  return panel;
}

// What a limiter goes by: its baseline, the latency from dispatch; and the wait before it.
ChartPanel delay_panel(const Grouping& g, const ServiceGroup& group) {
  const std::size_t first = group.members.front();
  const auto line = [&](const char* label, const char* color, float SeriesPoint::Service::*field) {
    return ChartLine{
        label, color, "", false, false, g.average([first, field](const SeriesPoint& p) {
          const double value = p.services[first].*field;
          return value > 0 ? value : -1.0;
        })};
  };
  return {group.name + ": wait in the room, median from dispatch, baseline",
          "milliseconds, log scale",
          true,
          {line("room wait", "#009e73", &SeriesPoint::Service::wait_ms),
           line("from dispatch", "#0072b2", &SeriesPoint::Service::dispatch_p50_ms),
           line("baseline", "#000000", &SeriesPoint::Service::baseline_ms)}};
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
  std::vector<ServiceGroup> groups = groups_of(scenario);
  if (groups.size() > kGroupsMax) groups.resize(kGroupsMax);
  for (const ServiceGroup& group : groups) {
    chart.panels.push_back(service_panel(g, scenario, group));
    const std::size_t first = group.members.front();
    if (scenario.services[first].admission) chart.panels.push_back(delay_panel(g, group));
    if (scenario.services[first].memory) {
      chart.panels.push_back(memory_panel(g, scenario.services[first], first));
    }
  }
  return chart.to_svg();
}

}  // namespace weir::inline v0::sim
