#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report.h"

namespace weir::inline v0::sim {
namespace {

using Json = nlohmann::ordered_json;

Json calls_json(const Scenario& scenario, const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  Json list = Json::array();
  for (std::size_t i = 0; i < span.calls.size(); ++i) {
    const Cohort& cohort = result.recorder.cohorts()[i];
    const CallTotals& c = span.calls[i];
    list.push_back({{"load", scenario.loads[cohort.load].name},
                    {"class", name_of(cohort.priority)},
                    {"offered_per_second", static_cast<double>(c.offered) / span.seconds()},
                    {"goodput_per_second", static_cast<double>(c.ok()) / span.seconds()},
                    {"ok", c.ended[0]},
                    {"refused", c.ended[1]},
                    {"failed", c.ended[2]},
                    {"timed_out", c.ended[3]},
                    {"attempts", c.attempts},
                    {"attempts_refused", c.refused},
                    {"latency_p50_ms", to_millis(c.latency.quantile(0.5))},
                    {"latency_p90_ms", to_millis(c.latency.quantile(0.9))},
                    {"latency_p99_ms", to_millis(c.latency.quantile(0.99))}});
  }
  return list;
}

Json hedging_json(const ServiceTotals& s) {
  Json not_sent = Json::object();
  for (std::size_t i = 0; i < policy::kNoHedgeCount; ++i) {
    if (s.hedges.not_sent[i] == 0) continue;
    not_sent[std::string(policy::kNoHedgeNames[i])] = s.hedges.not_sent[i];
  }
  return {{"hedges", s.hedges.sent},
          {"won", s.hedges.won},
          {"lost", s.hedges.lost},
          {"failed", s.hedges.failed},
          {"not_sent", not_sent}};
}

Json messages_json(const MessageTotals& m) {
  return {{"offered", m.offered},
          {"dropped", m.dropped},
          {"refused", m.refused},
          {"expired", m.expired},
          {"queued_max", m.queued_max}};
}

Json services_json(const Scenario& scenario, const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  Json list = Json::array();
  for (std::size_t i = 0; i < span.services.size(); ++i) {
    const ServiceSpec& spec = scenario.services[i];
    const ServiceTotals& s = span.services[i];
    Json refused = Json::object();
    for (std::size_t r = 1; r < kReasonCount; ++r) {
      if (s.refused[r] > 0) refused[std::string(kReasonFacts[r].name)] = s.refused[r];
    }
    Json item = {{"service", spec.name},
                 {"limiter", spec.admission ? name_of(spec.admission->limit.policy) : "none"},
                 {"limit_min", s.limit_min},
                 {"limit_max", s.limit_max},
                 {"limit_end", s.limit_end},
                 {"in_flight_max", s.in_flight_max},
                 {"queue_max", s.queue_max},
                 {"memory_max", s.memory_max},
                 {"crashes", s.crashes},
                 {"completed", s.completed},
                 {"dispatch_p50_ms", to_millis(s.dispatch.quantile(0.5))},
                 {"dispatch_p99_ms", to_millis(s.dispatch.quantile(0.99))},
                 {"refused", refused}};
    if (spec.replicas && spec.replicas->hedge) item["hedging"] = hedging_json(s);
    if (s.messages.offered > 0) item["messages"] = messages_json(s.messages);
    list.push_back(std::move(item));
  }
  return list;
}

Json verdicts_json(const RunResult& result) {
  Json list = Json::array();
  for (const VerdictResult& v : result.verdicts) {
    Json item = {{"name", v.spec.name},
                 {"measure", facts_of(v.spec.measure).name},
                 {"value", v.known ? Json(v.value) : Json(nullptr)},
                 {"holds", v.holds}};
    if (v.spec.min) item["min"] = *v.spec.min;
    if (v.spec.max) item["max"] = *v.spec.max;
    list.push_back(std::move(item));
  }
  return list;
}

Json series_json(const Scenario& scenario, const RunResult& result) {
  const Recorder& recorder = result.recorder;
  Json calls = Json::array();
  for (std::size_t i = 0; i < recorder.cohorts().size(); ++i) {
    const Cohort& cohort = recorder.cohorts()[i];
    Json item = {{"load", scenario.loads[cohort.load].name}, {"class", name_of(cohort.priority)}};
    for (const SeriesPoint& p : recorder.series()) {
      item["offered"].push_back(p.calls[i].offered);
      item["ok"].push_back(p.calls[i].ok);
      item["refused"].push_back(p.calls[i].refused);
    }
    calls.push_back(std::move(item));
  }
  Json services = Json::array();
  for (std::size_t i = 0; i < scenario.services.size(); ++i) {
    Json item = {{"service", scenario.services[i].name}};
    for (const SeriesPoint& p : recorder.series()) {
      item["limit"].push_back(p.services[i].limit);
      item["in_flight"].push_back(p.services[i].in_flight);
      item["queue"].push_back(p.services[i].queue);
      item["memory"].push_back(p.services[i].memory);
      item["wait_ms"].push_back(double{p.services[i].wait_ms});
      item["baseline_ms"].push_back(double{p.services[i].baseline_ms});
    }
    services.push_back(std::move(item));
  }
  Json latency = Json::object();
  for (const SeriesPoint& p : recorder.series()) {
    latency["p50_ms"].push_back(double{p.p50_ms});
    latency["p90_ms"].push_back(double{p.p90_ms});
    latency["p99_ms"].push_back(double{p.p99_ms});
  }
  return {{"bucket_seconds", to_seconds(recorder.bucket())},
          {"calls", calls},
          {"services", services},
          {"latency", latency}};
}

}  // namespace

std::string json_report(const Scenario& scenario, const RunResult& result, bool series) {
  const Balance& b = result.balance;
  Json json = {{"scenario", scenario.name},
               {"file", scenario.file},
               {"seed", scenario.seed},
               {"simulated_seconds", to_seconds(scenario.duration)},
               {"passed", result.passed()},
               {"verdicts", verdicts_json(result)},
               {"loads", calls_json(scenario, result)},
               {"services", services_json(scenario, result)},
               {"calls", b.started},
               {"attempts", b.attempts},
               {"unfinished", b.unfinished},
               {"events", b.events},
               {"digest", fmt::format("{:016x}", result.digest)}};
  if (series) json["series"] = series_json(scenario, result);
  if (result.wall_seconds > 0) {
    json["run"] = {{"wall_seconds", result.wall_seconds},
                   {"requests_per_second", static_cast<double>(b.attempts) / result.wall_seconds}};
  }
  return json.dump(2);
}

std::string json_list(const std::vector<std::string>& items) {
  std::string all = "[\n";
  for (std::size_t i = 0; i < items.size(); ++i)
    all += items[i] + (i + 1 < items.size() ? ",\n" : "\n");
  return all + "]\n";
}

}  // namespace weir::inline v0::sim
