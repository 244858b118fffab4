#include "seeds.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "measure.h"
#include "report.h"

namespace weir::inline v0::sim {
namespace {

// How far a value is inside its bounds; negative: outside. A value that never came is furthest out.
double margin(const VerdictResult& result) noexcept {
  if (!result.known) return -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  if (result.spec.min) least = std::min(least, result.value - *result.spec.min);
  if (result.spec.max) least = std::min(least, *result.spec.max - result.value);
  return least;
}

std::string value_text(const VerdictResult& result) {
  return result.known ? printed(result.spec, result.value) : "never";
}

}  // namespace

std::size_t SeedsVerdict::worst() const noexcept {
  const auto at =
      std::min_element(results.begin(), results.end(),
                       [](const auto& a, const auto& b) { return margin(a) < margin(b); });
  return static_cast<std::size_t>(at - results.begin());
}

double SeedsVerdict::median() const {
  std::vector<double> values;
  for (const VerdictResult& result : results) {
    values.push_back(result.known ? result.value : std::numeric_limits<double>::infinity());
  }
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::size_t SeedsVerdict::failed() const noexcept {
  return static_cast<std::size_t>(std::count_if(results.begin(), results.end(),
                                                [](const VerdictResult& r) { return !r.holds; }));
}

bool SeedsResult::passed() const noexcept {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const SeedsVerdict& v) { return v.failed() == 0; });
}

SeedsResult run_seeds(const Scenario& scenario, std::size_t seeds, const Progress& progress) {
  SeedsResult all{scenario.seed, seeds, {}};
  for (const VerdictSpec& spec : scenario.verdicts) all.verdicts.push_back({spec, {}});
  Scenario seeded = scenario;
  for (std::size_t i = 0; i < seeds; ++i) {
    seeded.seed = scenario.seed + i;
    const RunResult result = run_scenario(seeded);
    for (std::size_t v = 0; v < all.verdicts.size(); ++v) {
      all.verdicts[v].results.push_back(result.verdicts[v]);
    }
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(seeds), 0);
  }
  return all;
}

std::string seeds_text(const Scenario& scenario, const SeedsResult& result) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}  ({} seeds from {})\n", scenario.name, result.seeds, result.first_seed);
  for (const SeedsVerdict& verdict : result.verdicts) {
    const std::size_t worst = verdict.worst();
    fmt::format_to(out, "  {} {}: median {}, worst {} (seed {})",
                   verdict.failed() == 0 ? "ok  " : "FAIL", verdict.spec.name,
                   printed(verdict.spec, verdict.median()), value_text(verdict.results[worst]),
                   result.first_seed + worst);
    if (verdict.failed() > 0) {
      fmt::format_to(out, ", {} of {} seeds fail", verdict.failed(), result.seeds);
    }
    fmt::format_to(out, " [{}]\n", described(scenario, verdict.spec));
  }
  return text;
}

std::string seeds_json(const Scenario& scenario, const SeedsResult& result) {
  using Json = nlohmann::ordered_json;
  Json verdicts = Json::array();
  for (const SeedsVerdict& verdict : result.verdicts) {
    const std::size_t worst = verdict.worst();
    Json item = {{"name", verdict.spec.name},
                 {"measure", facts_of(verdict.spec.measure).name},
                 {"median", verdict.median()},
                 {"worst_seed", result.first_seed + worst},
                 {"failed", verdict.failed()}};
    const VerdictResult& at_worst = verdict.results[worst];
    item["worst"] = at_worst.known ? Json(at_worst.value) : Json(nullptr);
    if (verdict.spec.min) item["min"] = *verdict.spec.min;
    if (verdict.spec.max) item["max"] = *verdict.spec.max;
    verdicts.push_back(std::move(item));
  }
  const Json json = {{"scenario", scenario.name},       {"file", scenario.file},
                     {"first_seed", result.first_seed}, {"seeds", result.seeds},
                     {"passed", result.passed()},       {"verdicts", verdicts}};
  return json.dump(2);
}

}  // namespace weir::inline v0::sim
