#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "weir/experimental/config/print.h"

#include "policy/recording.h"
#include "scenario.h"
#include "world.h"

namespace weir::inline v0::sim {

/// The recording of a gateway before the first service of a scenario, which is called app.
inline policy::Recording recorded_run(const Scenario& scenario) {
  policy::Recording recording;
  World world(scenario);
  world.record_decisions(
      [&](const policy::RecordedDecision& one) { recording.decisions.push_back(one); });
  world.run_until(world.end());
  std::stable_sort(recording.decisions.begin(), recording.decisions.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  for (const ReasonFacts& facts : kReasonFacts) recording.header.reasons.emplace_back(facts.name);
  recording.header.scopes = {{0, "app"}};
  recording.header.capacity = recording.decisions.size();
  config::Config config;
  config.admission = *scenario.services.front().admission;
  config.upstreams.resize(1);
  config.upstreams[0].name = "app";
  recording.header.config = config::print_admission(config);
  return recording;
}

inline std::string bytes_of(const policy::Recording& recording) {
  std::string bytes = policy::encode_header(recording.header);
  for (const policy::RecordedDecision& one : recording.decisions) {
    policy::append_decision(bytes, policy::pack(one));
  }
  return bytes;
}

/// Quiet, then twice of what the service can do, then quiet; classes and actors as given.
inline std::string overload_scenario(std::uint64_t seed, const std::string& limit) {
  return R"(
duration = "40s"
seed = )" +
         std::to_string(seed) +
         R"(
[[service]]
name = "api"
workers = 16
time = { kind = "lognormal", median = "18ms", sigma = 0.4 }
[service.admission]
[service.admission.limit]
)" + limit +
         R"(
[[load]]
name = "low"
to = "api"
class = "low"
rate = [{ at = "0s", rate = 150 }, { at = "12s", rate = 900 }, { at = "30s", rate = 150 }]
[[load]]
name = "normal"
to = "api"
rate = [{ at = "0s", rate = 150 }, { at = "12s", rate = 700 }, { at = "30s", rate = 150 }]
)";
}

}  // namespace weir::inline v0::sim
