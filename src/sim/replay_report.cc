#include "replay_report.h"

#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weir::inline v0::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRetries =
    "Recorded retries do not react: with other settings, clients would have come back at other "
    "times, or not at all.";
constexpr std::size_t kNameWidth = 24;

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string service_text(const ReplayTitle& title, const ReplayResult& result) {
  const ServiceFit& fit = result.fit;
  std::string text =
      fmt::format("service   {:.4g} ms per request (mean of {} while little was in flight); ",
                  to_millis(fit.mean), fit.samples);
  text += fit.saturated
              ? fmt::format("{} workers: with more in flight it answered no more than {:.4g}/s\n",
                            fit.workers, fit.drain_max)
              : fmt::format("workers unknown, at least {}: it was never saturated\n", fit.workers);
  if (title.workers > 0) text += fmt::format("          forecast with {} workers\n", title.workers);
  return text;
}

using Columns = std::vector<const LoadResult*>;

Columns columns_of(const ReplayResult& result) {
  Columns columns = {&result.recorded, &result.replayed};
  if (result.forecast) columns.push_back(&*result.forecast);
  return columns;
}

void append_row(std::string& out, const std::string& name, const Columns& columns,
                const std::function<double(const LoadResult&)>& value) {
  out += fmt::format("{:<{}}", name, kNameWidth);
  for (const LoadResult* column : columns) out += fmt::format("{:>12.5g}", value(*column));
  out += "\n";
}

bool any_of(const Columns& columns, std::size_t reason, std::size_t priority) {
  for (const LoadResult* column : columns) {
    if (column->by_reason[reason][priority] > 0) return true;
  }
  return false;
}

std::string table(const ReplayResult& result) {
  const Columns columns = columns_of(result);
  std::string out = fmt::format("{:<{}}{:>12}{:>12}{}\n", "", kNameWidth, "recorded", "replayed",
                                result.forecast ? "    forecast" : "");
  append_row(out, "asked", columns, [](const LoadResult& r) { return double(r.asked); });
  append_row(out, "admitted", columns, [](const LoadResult& r) { return double(r.admitted); });
  append_row(out, "refused", columns, [](const LoadResult& r) { return double(r.refused); });
  for (std::size_t reason = 1; reason < kReasonCount; ++reason) {
    for (const Priority p : kPriorities) {
      if (!any_of(columns, reason, index_of(p))) continue;
      append_row(out, fmt::format("  {}, {}", name_of(static_cast<Reason>(reason)), name_of(p)),
                 columns,
                 [&](const LoadResult& r) { return double(r.by_reason[reason][index_of(p)]); });
    }
  }
  append_row(out, "p50 (ms)", columns, [](const LoadResult& r) { return to_millis(r.p50); });
  append_row(out, "p99 (ms)", columns, [](const LoadResult& r) { return to_millis(r.p99); });
  append_row(out, "goodput (1/s)", columns, [](const LoadResult& r) { return r.goodput(); });
  append_row(out, "in flight, most", columns,
             [](const LoadResult& r) { return double(r.in_flight_max); });
  return out;
}

std::string judgement(const ReplayTitle& title, const ReplayResult& result) {
  std::string text;
  for (const Deviation& one : result.deviations) {
    if (one.fits) continue;
    text += fmt::format("{} was {:.4g} and is replayed as {:.4g}; ", one.what, one.recorded,
                        one.replayed);
  }
  if (!text.empty()) {
    return "does not fit: " + text +
           "so this says nothing about other settings. The service is not one of workers with a "
           "queue, it changed meanwhile, or the recording holds no quiet time\n";
  }
  text = "fits: the settings of then, replayed, refuse and delay as recorded, within a fifth\n";
  if (result.beyond_what_is_known(title.workers)) {
    text += fmt::format(
        "beyond what is known: the forecast has up to {} in flight, and how the service is with "
        "more than {} was not recorded; state it with --workers\n",
        result.forecast->in_flight_max, result.fit.workers);
  }
  return text;
}

Json load_json(const LoadResult& result) {
  Json reasons = Json::object();
  for (std::size_t reason = 1; reason < kReasonCount; ++reason) {
    for (const Priority p : kPriorities) {
      const std::uint64_t count = result.by_reason[reason][index_of(p)];
      if (count == 0) continue;
      reasons[std::string(name_of(static_cast<Reason>(reason)))][std::string(name_of(p))] = count;
    }
  }
  return {{"asked", result.asked},           {"admitted", result.admitted},
          {"refused", result.refused},       {"refused_by", reasons},
          {"p50_ms", to_millis(result.p50)}, {"p99_ms", to_millis(result.p99)},
          {"goodput", result.goodput()},     {"in_flight_max", result.in_flight_max}};
}

}  // namespace

std::string replay_text(const ReplayTitle& title, const ReplayResult& result) {
  std::string out = fmt::format("recording {}: {} decisions, upstream {}\n", title.file,
                                title.decisions, title.upstream);
  if (title.torn > 0)
    out += fmt::format("          {} records were not written whole\n", title.torn);
  if (!title.others.empty()) {
    out += fmt::format("          not replayed (--upstream): {}\n", joined(title.others));
  }
  out += fmt::format("window    {:.4g} s, of which the first {:.3g} s are not compared\n",
                     to_seconds(result.load.length()), to_seconds(result.load.settle));
  if (result.load.left_out > 0) {
    out += fmt::format(
        "          left out: {} requests that memory, deadlines or rules before "
        "admission refused\n",
        result.load.left_out);
  }
  out += service_text(title, result);
  if (!title.changes.empty()) out += fmt::format("forecast  {}\n", joined(title.changes));
  out += "\n" + table(result) + "\n" + judgement(title, result);
  out += std::string(kRetries) + "\n";
  return out;
}

std::string replay_json(const ReplayTitle& title, const ReplayResult& result) {
  Json deviations = Json::array();
  for (const Deviation& one : result.deviations) {
    deviations.push_back({{"what", one.what},
                          {"recorded", one.recorded},
                          {"replayed", one.replayed},
                          {"fits", one.fits}});
  }
  const Json page = {{"recording", title.file},
                     {"upstream", title.upstream},
                     {"decisions", title.decisions},
                     {"torn", title.torn},
                     {"seconds", to_seconds(result.load.length())},
                     {"left_out", result.load.left_out},
                     {"service",
                      {{"mean_ms", to_millis(result.fit.mean)},
                       {"workers", result.fit.saturated ? Json(result.fit.workers) : Json()},
                       {"workers_at_least", result.fit.workers},
                       {"drain_per_second", result.fit.drain_max},
                       {"saturated", result.fit.saturated}}},
                     {"changes", title.changes},
                     {"recorded", load_json(result.recorded)},
                     {"replayed", load_json(result.replayed)},
                     {"deviations", deviations},
                     {"fits", result.fits()},
                     {"beyond_what_is_known", result.beyond_what_is_known(title.workers)},
                     {"forecast", result.forecast ? load_json(*result.forecast) : Json()},
                     {"note", kRetries}};
  constexpr int kIndent = 2;
  return page.dump(kIndent, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir::inline v0::sim
