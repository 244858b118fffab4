#include "compare.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "weir/base/number_text.h"

namespace weir::inline v0::sim {
namespace {

std::size_t first_guarded(const Scenario& scenario) noexcept {
  for (std::size_t i = 0; i < scenario.services.size(); ++i) {
    if (scenario.services[i].admission) return i;
  }
  return 0;
}

double goodput_of(const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  const CallTotals all = select(span, result.recorder.cohorts(), std::nullopt, std::nullopt);
  return static_cast<double>(all.ok()) / span.seconds();
}

}  // namespace

std::optional<LimiterChoice> limiter_named(std::string_view name) noexcept {
  LimiterChoice choice;
  choice.none = name == "none";
  if (choice.none) return choice;
  const std::size_t colon = name.find(':');
  const auto kind = limit_kind_named(name.substr(0, colon));
  if (!kind) return std::nullopt;
  choice.kind = *kind;
  if (colon == std::string_view::npos) return choice;
  choice.fixed = parse_number<std::uint32_t>(name.substr(colon + 1)).value_or(0);
  const bool allowed = choice.kind == LimitKind::kFixed && choice.fixed >= 1;
  return allowed && choice.fixed <= kClassUnitsMax ? std::optional(choice) : std::nullopt;
}

std::string name_of(const LimiterChoice& choice) {
  if (choice.none) return "none";
  if (choice.fixed == 0) return std::string(name_of(choice.kind));
  return fmt::format("{}:{}", name_of(choice.kind), choice.fixed);
}

Scenario with_limiter(const Scenario& scenario, const LimiterChoice& choice) {
  Scenario changed = scenario;
  for (ServiceSpec& service : changed.services) {
    if (choice.none) service.admission.reset();
    if (!service.admission) continue;
    LimitConfig& limit = service.admission->limit;
    limit.policy = choice.kind;
    if (choice.fixed == 0) continue;
    limit.initial_limit = choice.fixed;
    limit.max_limit = std::max(limit.max_limit, choice.fixed);
  }
  return changed;
}

CompareRow row_of(const Scenario& scenario, const RunResult& result, std::string limiter) {
  CompareRow row;
  row.limiter = std::move(limiter);
  const SpanTotals& span = result.recorder.spans().front();
  const CallTotals all = select(span, result.recorder.cohorts(), std::nullopt, std::nullopt);
  row.goodput = goodput_of(result);
  row.success_ratio = all.ended_all() == 0
                          ? 0
                          : static_cast<double>(all.ok()) / static_cast<double>(all.ended_all());
  const std::size_t guarded = first_guarded(scenario);
  const ServiceTotals& service = span.services[guarded];
  row.has_limit = scenario.services[guarded].admission.has_value();
  row.dispatch_p99_ms = to_millis(service.dispatch.quantile(0.99));
  row.limit_min = service.limit_min;
  row.limit_max = service.limit_max;
  row.verdicts = result.verdicts.size();
  for (const VerdictResult& verdict : result.verdicts) {
    if (verdict.holds) {
      ++row.verdicts_held;
    } else {
      row.failed += (row.failed.empty() ? "" : "; ") + verdict.spec.name;
    }
  }
  return row;
}

std::string compare_table(const Scenario& scenario, const std::vector<CompareRow>& rows) {
  std::string text = scenario.name + "\n";
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  {:<12} {:>11} {:>9} {:>12} {:>14} {:>9}  {}\n", "limiter", "goodput/s",
                 "success", "p99 ms", "limit", "verdicts", "fails");
  for (const CompareRow& row : rows) {
    fmt::format_to(out, "  {:<12} {:>11.1f} {:>8.2f}% {:>12.2f} {:>14} {:>9}  {}\n", row.limiter,
                   row.goodput, row.success_ratio * 100, row.dispatch_p99_ms,
                   row.has_limit ? fmt::format("{} to {}", row.limit_min, row.limit_max) : "-",
                   fmt::format("{}/{}", row.verdicts_held, row.verdicts),
                   row.failed.empty() ? "-" : row.failed);
  }
  return text;
}

FixedSearch search_fixed(const Scenario& scenario, const Progress& progress) {
  FixedSearch search;
  constexpr int kRunsExpected = 20;
  std::vector<std::pair<std::uint32_t, double>> tried;
  const auto try_limit = [&](std::uint32_t limit) {
    for (const auto& known : tried) {
      if (known.first == limit) return;
    }
    const RunResult result =
        run_scenario(with_limiter(scenario, {LimitKind::kFixed, false, limit}));
    tried.emplace_back(limit, goodput_of(result));
    if (progress) progress(std::min(1.0, ++search.runs / double{kRunsExpected}), 0);
  };
  const auto best = [&] {
    return *std::max_element(tried.begin(), tried.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
  };
  for (std::uint32_t limit = 1; limit <= 1024; limit *= 2) try_limit(limit);
  const std::uint32_t near = best().first;
  for (std::uint32_t eighth = 5; eighth <= 14; ++eighth) {
    try_limit(std::clamp(near * eighth / 8, 1U, 1024U));
  }
  search.goodput = best().second;
  search.limit = best().first;
  for (const auto& [limit, goodput] : tried) {
    if (goodput >= 0.999 * search.goodput && limit < search.limit) search.limit = limit;
  }
  const RunResult own = run_scenario(scenario);
  const std::size_t service = first_guarded(scenario);
  search.own_goodput = goodput_of(own);
  search.own_dispatch_p99_ms =
      to_millis(own.recorder.spans().front().services[service].dispatch.quantile(0.99));
  search.unloaded_p99_ms = to_millis(scenario.services[service].time.quantile(0.99));
  return search;
}

std::string printed(const FixedSearch& search) {
  return fmt::format(
      "  best fixed limit {} gets {:.1f}/s\n"
      "  {:<4} this limiter gets {:.1f}/s, {:.1f} % of it; at least {:.0f} % wanted\n"
      "  {:<4} p99 from dispatch {:.2f} ms, {:.2f} times the unloaded {:.2f} ms; at most {:.0f}\n",
      search.limit, search.goodput, search.enough_goodput() ? "ok" : "FAIL", search.own_goodput,
      search.goodput > 0 ? 100 * search.own_goodput / search.goodput : 100.0,
      100 * FixedSearch::kGoodputShare, search.quick_enough() ? "ok" : "FAIL",
      search.own_dispatch_p99_ms,
      search.unloaded_p99_ms > 0 ? search.own_dispatch_p99_ms / search.unloaded_p99_ms : 0.0,
      search.unloaded_p99_ms, FixedSearch::kLatencyFactor);
}

}  // namespace weir::inline v0::sim
