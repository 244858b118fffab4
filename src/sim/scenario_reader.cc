#include "scenario_reader.h"

#include <algorithm>
#include <utility>

#include "weir/policy/reason.h"

#include "policy/diagnosis.h"
#include "policy/hedge_decision.h"

namespace weir::inline v0::sim {
namespace {

std::vector<std::string> names_in(const ConfigNode& root, std::string_view key) {
  std::vector<std::string> names;
  const ConfigNode* list = root.find(key);
  if (list == nullptr) return names;
  for (const ConfigNode& item : list->items) {
    const ConfigNode* name = item.find("name");
    names.push_back(name != nullptr ? name->text : "");
  }
  return names;
}

void check_names(NodeReader& reader, std::string_view key, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      reader.fault(key, "no name", "every [[" + std::string(key) + "]] has a name");
    if (std::count(names.begin(), names.end(), names[i]) > 1) {
      reader.fault(key, names[i], "a name used once");
      return;
    }
  }
}

// Depth-first search; a service in a cycle of calls would be blocked on itself.
bool calls_in_a_circle(const Scenario& scenario, std::uint32_t at, std::vector<int>& seen) {
  if (seen[at] == 1) return true;
  if (seen[at] == 2) return false;
  seen[at] = 1;
  for (const CallSpec& call : scenario.services[at].calls) {
    if (calls_in_a_circle(scenario, call.to, seen)) return true;
  }
  seen[at] = 2;
  return false;
}

void check_whole(NodeReader& reader, const Scenario& scenario) {
  if (scenario.services.empty()) reader.fault("service", "none", "at least one [[service]]");
  if (scenario.loads.empty()) reader.fault("load", "none", "at least one [[load]]");
  if (scenario.duration.count() <= 0) reader.fault("duration", "0", "more than 0s");
  if (scenario.settle >= scenario.duration) {
    reader.fault("settle", "not before the end", "less than duration");
  }
  if (scenario.bucket.count() > 0 && scenario.duration / scenario.bucket > kBucketsMax) {
    reader.fault("bucket", "too small", "at least duration / " + std::to_string(kBucketsMax));
  }
  std::vector<int> seen(scenario.services.size(), 0);
  for (std::uint32_t i = 0; i < scenario.services.size(); ++i) {
    for (const CallSpec& call : scenario.services[i].calls) {
      if (call.to >= scenario.services.size()) return;  // already reported
    }
  }
  for (std::uint32_t i = 0; i < scenario.services.size(); ++i) {
    if (calls_in_a_circle(scenario, i, seen)) {
      return reader.fault("service", scenario.services[i].name + " calls itself in the end",
                          "calls that come to an end");
    }
  }
}

std::string_view meaning_of(MeasureUnit unit) noexcept {
  switch (unit) {
    case MeasureUnit::kPerSecond:
      return ", calls per second";
    case MeasureUnit::kRatio:
      return ", a ratio; 1 is all";
    default:
      return "";
  }
}

void read_bound(NodeReader& reader, std::string_view key, MeasureUnit unit,
                std::optional<double>& out) {
  const ConfigNode* node = reader.raw(key);
  if (node == nullptr) return;
  const bool timed = unit == MeasureUnit::kMillis || unit == MeasureUnit::kSeconds;
  if (timed) {
    const auto value = duration_of(*node);
    if (!value)
      return reader.fault(key, node->printed(),
                          "a duration with its unit, in quotes, such as \"80ms\"");
    out = unit == MeasureUnit::kMillis ? to_millis(*value) : to_seconds(*value);
    return;
  }
  if (node->kind != ConfigNode::Kind::kInteger && node->kind != ConfigNode::Kind::kFloat) {
    return reader.fault(key, node->printed(), "a number" + std::string(meaning_of(unit)));
  }
  out = node->number;
}

/// What the diagnosis of a service should say.
void read_cause(NodeReader& reader, const Scenario& scenario, VerdictSpec& out) {
  std::vector<std::string_view> causes;
  causes.reserve(policy::kCauseCount);
  for (const policy::CauseFacts& cause : policy::kCauseFacts) causes.push_back(cause.name);
  std::size_t index = 0;
  reader.require("cause", "what the diagnosis should say");
  reader.choice("cause", index, causes);
  out.reason = static_cast<std::uint32_t>(index);
  if (out.service < scenario.services.size() && !scenario.services[out.service].admission) {
    reader.fault("measure", "the service has no admission, so nothing diagnoses it",
                 "diagnosed, for a service with admission");
  }
}

}  // namespace

Duration Scenario::bucket_width() const noexcept {
  if (bucket.count() > 0) return bucket;
  constexpr std::int64_t kSteps[] = {10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 60000};
  for (const std::int64_t ms : kSteps) {
    if (duration / std::chrono::milliseconds(ms) <= 600) return std::chrono::milliseconds(ms);
  }
  return std::chrono::hours(1);
}

void read_reference(NodeReader& reader, std::string_view key, const std::vector<std::string>& names,
                    std::uint32_t& out) {
  std::vector<std::string_view> views(names.begin(), names.end());
  std::size_t index = out;
  reader.choice(key, index, views);
  out = static_cast<std::uint32_t>(index);
}

void read_verdict(NodeReader& reader, const ScenarioNames& names, const Scenario& scenario,
                  VerdictSpec& out) {
  reader.text("name", out.name);
  reader.require("measure", "what to look at");
  reader.choice("measure", out.measure, kMeasureNames);
  const MeasureFacts& facts = facts_of(out.measure);
  if (out.name.empty()) out.name = facts.name;
  if (facts.of == MeasureOf::kCalls) {
    if (reader.has("class")) {
      out.priority = Priority::kNormal;
      reader.choice("class", *out.priority, kPriorityNames);
    }
    if (reader.has("load")) {
      out.load = 0;
      read_reference(reader, "load", names.loads, *out.load);
    }
    if (reader.has("against")) {
      read_reference(reader, "against", names.loads, out.against.emplace());
    }
  } else if (facts.of == MeasureOf::kService) {
    read_reference(reader, "service", names.services, out.service);
    if (out.service < scenario.services.size()) {
      out.first_gateway = scenario.services[out.service].first_gateway;
      out.gateways = scenario.services[out.service].gateways;
    }
  }
  if (out.measure == Measure::kRefused) {
    std::vector<std::string_view> reasons;
    reasons.reserve(kReasonCount);
    for (const ReasonFacts& reason : kReasonFacts) reasons.push_back(reason.name);
    std::size_t index = index_of(Reason::kOverload);
    reader.choice("reason", index, reasons);
    out.reason = static_cast<std::uint32_t>(index);
  }
  if (out.measure == Measure::kDiagnosed) read_cause(reader, scenario, out);
  if (out.measure == Measure::kNoHedge) {
    auto reason = policy::NoHedge::kBudget;
    reader.choice("reason", reason, policy::kNoHedgeNames);
    out.reason = static_cast<std::uint32_t>(reason);
  }
  if (out.measure == Measure::kRecoveryTime) {
    reader.require("after", "the instant from which to count");
    reader.duration("after", out.after);
    reader.number("level", out.level, 0, 1e9);
    reader.duration("hold", out.hold);
  } else {
    if (out.measure == Measure::kSlowRatio) {
      reader.require("above", "the longest time that is good, such as \"90ms\"");
      reader.duration("above", out.above);
    }
    reader.duration("from", out.from);
    reader.duration("to", out.to);
  }
  if (out.to.count() == 0) out.to = scenario.duration;
  if (out.from >= out.to || out.to > scenario.duration) {
    reader.fault("from", "the part of the run looked at is empty or beyond its end",
                 "from < to ≤ duration");
  }
  read_bound(reader, "min", unit_of(out), out.min);
  read_bound(reader, "max", unit_of(out), out.max);
  if (!reader.has("min") && !reader.has("max")) reader.fault("min", "missing", "min, max or both");
}

Result<Scenario, ConfigErrors> read_scenario(const ConfigNode& root, const std::string& file,
                                             const FileSource& files) {
  ConfigErrors errors;
  Scenario scenario;
  scenario.file = file;
  NodeReader reader(root, "", file, errors);
  reader.text("name", scenario.name);
  reader.text("story", scenario.story);
  reader.whole("seed", scenario.seed, std::uint64_t{0}, ~std::uint64_t{0} >> 1U);
  reader.duration("duration", scenario.duration);
  reader.duration("drain", scenario.drain);
  reader.duration("settle", scenario.settle);
  reader.duration("bucket", scenario.bucket);
  reader.boolean("stationary", scenario.stationary);
  reader.text("undiagnosed", scenario.undiagnosed);
  ScenarioNames names{names_in(root, "service"), names_in(root, "load"), names_in(root, "sender")};
  check_names(reader, "service", names.services);
  check_names(reader, "load", names.loads);
  check_names(reader, "sender", names.senders);
  reader.each("sender", [&](NodeReader& r) { read_sender(r, scenario.senders.emplace_back()); });
  reader.each("service", [&](NodeReader& r) {
    read_service(r, names, files, scenario.services.emplace_back());
  });
  reader.each("load",
              [&](NodeReader& r) { read_load(r, names, files, scenario.loads.emplace_back()); });
  add_replicas(scenario);
  for (std::size_t i = names.services.size(); i < scenario.services.size(); ++i) {
    names.services.push_back(scenario.services[i].name);
  }
  add_gateways(reader, scenario);
  reader.each("verdict", [&](NodeReader& r) {
    read_verdict(r, names, scenario, scenario.verdicts.emplace_back());
  });
  reader.each("phase", [&](NodeReader& r) {
    PhaseSpec& phase = scenario.phases.emplace_back();
    read_phase(r, scenario, phase);
    for (VerdictSpec& verdict : verdicts_of(phase, scenario)) {
      scenario.verdicts.push_back(std::move(verdict));
    }
  });
  reader.done();
  check_whole(reader, scenario);
  if (scenario.name.empty()) scenario.name = file;
  if (!errors.empty()) return unexpected(std::move(errors));
  return scenario;
}

Result<Scenario, ConfigErrors> read_scenario_text(std::string_view text, const std::string& file,
                                                  std::span<const std::string> assignments,
                                                  const FileSource& files) {
  auto parsed = parse_config(text, file);
  if (!parsed) return unexpected(ConfigErrors{parsed.error()});
  for (const std::string& assignment : assignments) {
    if (auto done = set_value(parsed.value(), assignment); !done) {
      return unexpected(ConfigErrors{done.error()});
    }
  }
  return read_scenario(parsed.value(), file, files);
}

std::string printed(const ConfigErrors& errors) {
  std::string all;
  for (const ConfigError& error : errors) {
    all += error.file;
    if (error.line > 0) all += ":" + std::to_string(error.line);
    all += ": " + (error.key.empty() ? "" : error.key + " = ") + error.value;
    all += "; allowed: " + error.allowed + "\n";
  }
  return all;
}

}  // namespace weir::inline v0::sim
